"""Selects and walks a stack that belongs to no rank, from saved registers that `rank context` found.

Takes what `rank context` has found; afterwards GDB's own commands mean that stack.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from gdbext.gdb_api import frame_description
from gdbext.gdb_api.run_commands import gdb_errors
from gdbext.selection import unwinder
from gdbext.selection.selection import Selection
from pieglobalsfind.errors import TargetError
from pieglobalsfind.stacks.frame import Backtrace


def walk(selection: Selection, registers: Mapping[int, int], reason: str) -> Backtrace:
    """Select the innermost of its frames; raises `TargetError` if there is none."""
    with gdb_errors():
        stack = selection.choose_registers(registers, reason)
        own = unwinder.own(stack, unwinder.chain(), lambda frame: frame)
        frames = list(itertools.islice(own, frame_description.MOST_FRAMES))
        if not frames:
            selection.clear("the stack that you asked for can't be unwound")
            raise TargetError("GDB can't unwind that stack")
        frames[0].select()
        return Backtrace(tuple(frame_description.describe(frame, False) for frame in frames), "")
