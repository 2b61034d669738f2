"""All registers of a stopped thread: what a rank has while it runs, with floating-point and vector registers if known.

Takes the kernel's two records of a thread; gives values by DWARF number.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from pieglobalsfind.machine.control_lookup import control_here
from pieglobalsfind.model import Absent
from pieglobalsfind.targets.ptrace import by_dwarf_number, raw_registers
from pieglobalsfind.targets.traced_threads import floating_point_state


def of_thread(tid: int) -> Mapping[int, int]:
    """The values, none of a thread that does not stand still."""
    raw, control = raw_registers(tid), control_here()
    if raw is None:
        return {}
    if control is None:
        values = by_dwarf_number(raw)
        return {} if isinstance(values, Absent) else values
    order = control.kernel_registers
    words = struct.unpack_from(f"<{len(order)}Q", raw)
    state = floating_point_state(tid, control.floating_point_size)
    integers = {number: value for number, value in zip(order, words) if number >= 0}
    return integers if state is None else {**integers, **control.floating_point(state)}
