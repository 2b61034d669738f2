"""All registers of a stopped thread: what a rank has while it runs, on x86-64 with floating-point and vector registers.

Takes the kernel's two records of a thread; gives values by DWARF number. Sources: <sys/user.h>, Intel's manual, volume
1, "Layout of the 64-bit-mode FXSAVE64 Map"; x86-64 psABI, figure 3.36.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

from pieglobalsfind.machine.x86_64 import X86_64
from pieglobalsfind.model import Absent
from pieglobalsfind.targets.ptrace import by_dwarf_number, raw_registers
from pieglobalsfind.targets.traced_threads import floating_point_state

# In the order of `struct user_regs_struct`; -1: the number of a system call, which DWARF does not know.
KERNEL_ORDER = (
    15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, 51, 49, 7, 52, 58, 59, 53, 50, 54, 55,
)  # fmt: skip
XMM, ST, MXCSR, CONTROL_WORD, STATUS_WORD = 17, 33, 64, 65, 66
XMM_AT, ST_AT, MXCSR_AT, CONTROL_WORD_AT, STATUS_WORD_AT = 160, 32, 24, 0, 2
SLOT, ST_SIZE = 16, 10  # bytes


def of_thread(tid: int) -> Mapping[int, int]:
    """The values, none of a thread that does not stand still."""
    raw = raw_registers(tid)
    if raw is None:
        return {}
    if os.uname().machine != X86_64.kernel_name:
        known = by_dwarf_number(raw)
        return {} if isinstance(known, Absent) else known
    words = struct.unpack_from(f"<{len(KERNEL_ORDER)}Q", raw)
    found = {number: value for number, value in zip(KERNEL_ORDER, words) if number >= 0}
    state = floating_point_state(tid)
    if state is not None:
        found.update(_floating_point(state))
    return found


def _floating_point(state: bytes) -> dict[int, int]:
    def number(at: int, size: int) -> int:
        return int.from_bytes(state[at : at + size], "little")

    found = {XMM + index: number(XMM_AT + SLOT * index, SLOT) for index in range(16)}
    found.update({ST + index: number(ST_AT + SLOT * index, ST_SIZE) for index in range(8)})
    found.update({MXCSR: number(MXCSR_AT, 4), CONTROL_WORD: number(CONTROL_WORD_AT, 2)})
    found[STATUS_WORD] = number(STATUS_WORD_AT, 2)
    return found
