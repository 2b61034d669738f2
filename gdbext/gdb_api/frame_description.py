"""Describes GDB's frames as the `Frame`s of pieglobalsfind, with arguments and locals as text.

Takes GDB's frames; gives `Frame`s whose arguments and locals are GDB's own text. It leaves the selected frame alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import execute, told
from gdbext.gdb_api.target import path_of
from pieglobalsfind.stacks.frame import CALLED_BY_DEBUGGER, SIGNAL_HANDLER, Frame

MOST_FRAMES = 10_000  # a corrupt stack must come to an end
NO_LOCALS = ("No locals.", "No symbol table info available.")


SPECIAL = {gdb.SIGTRAMP_FRAME: SIGNAL_HANDLER, gdb.DUMMY_FRAME: CALLED_BY_DEBUGGER}  # by the type of a frame


def describe(frame: gdb.Frame, variables: bool) -> Frame:
    """One frame; with `variables`, its locals too."""
    if frame.type() in SPECIAL:
        return Frame(frame.level(), frame.pc(), False, SPECIAL[frame.type()], "")
    symtab = frame.find_sal().symtab
    return Frame(
        level=frame.level(),
        pc=frame.pc(),
        shows_pc=line_of(frame).startswith("0x"),
        function=frame.name() or "",
        arguments=arguments_text(frame),
        file=path_of(symtab) if symtab is not None else "",
        line=frame.find_sal().line if symtab is not None else 0,
        library="" if symtab is not None else told(lambda: gdb.solib_name(frame.pc())) or "",
        variables=locals_text(frame) if variables else "",
    )


def line_of(frame: gdb.Frame, amount: str = "") -> str:
    """GDB's line for a frame, without its number: `0x... in solve (n=4) at solver.c:81`.

    `amount`: a value of `set print frame-arguments` that is another one than the user's setting.
    """
    setting = f"with print frame-arguments {amount} -- " if amount else ""
    line = execute(f"{setting}frame apply level {frame.level()} echo")
    return line.partition(" ")[2].strip()


def arguments_text(frame: gdb.Frame, amount: str = "") -> str:
    """`n=4, grid=...` as GDB prints it in backtraces; "" if it knows none."""
    line, name = line_of(frame, amount), frame.name()
    start = line.find(f"{name} (") if name else -1
    if start < 0:
        return ""
    start += len(f"{name} (")
    end = max(line.rfind(") at "), line.rfind(") from "))
    if end < 0:
        end = len(line) - 1
    return line[start:end]


def parameters(frame: gdb.Frame) -> Iterator[gdb.Symbol]:
    """Yield a call's parameters, in GDB's order."""
    block: Optional[gdb.Block] = None
    with suppress(RuntimeError):  # without debug information
        block = frame.block()
    while block is not None and block.function is None:
        block = block.superblock
    yield from (symbol for symbol in block or () if symbol.is_argument)


def locals_text(frame: gdb.Frame) -> str:
    """`name = value` lines, the innermost block's first; "" if there are none."""
    text = execute(f"frame apply level {frame.level()} -q info locals").strip("\n")
    return "" if text in NO_LOCALS else text
