"""What a debugger shows of a stack: its frames, and where they end."""

from __future__ import annotations

from dataclasses import dataclass

# What stands in place of a function's name where none was called, as GDB writes it.
SIGNAL_HANDLER, CALLED_BY_DEBUGGER = "<signal handler called>", "<function called from gdb>"


@dataclass(frozen=True)
class Frame:
    """One frame of a rank's stack. `level` is the number by which the debugger selects it.

    `arguments` (`n=4, grid=...`) and `variables` (lines `name = value`, the innermost block's first, if they were
    asked for) are the debugger's own text. `library` is where a function without line information comes from.
    """

    level: int
    pc: int
    shows_pc: bool
    function: str
    arguments: str
    file: str = ""
    line: int = 0
    library: str = ""
    variables: str = ""


@dataclass(frozen=True)
class Backtrace:
    """The frames of a suspended thread, innermost first. `ends`: why they end before an outermost one, "" if not."""

    frames: tuple[Frame, ...]
    ends: str
