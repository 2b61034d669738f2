"""What GDB knows of a frame, as a value that every debugger could give.

Takes GDB's frames; gives `Frame`s with arguments and locals as GDB prints them in backtraces. It selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import gdb

from pieglobalsfind.command import Frame, Variable

AGGREGATES = (
    gdb.TYPE_CODE_STRUCT,
    gdb.TYPE_CODE_UNION,
    gdb.TYPE_CODE_ARRAY,
    gdb.TYPE_CODE_SET,
)
MOST_FRAMES = 10_000  # a corrupt stack must come to an end


def describe(frame: gdb.Frame, variables: bool) -> Frame:
    """One frame; with `variables`, its locals too."""
    block = block_of(frame)
    line = frame.find_sal()
    symtab = line.symtab
    return Frame(
        level=frame.level(),
        pc=frame.pc(),
        shows_pc=shows_pc(frame, line),
        function=frame.name() or "",
        arguments=tuple(arguments(frame, block)),
        file=symtab.filename if symtab is not None else "",
        line=line.line if symtab is not None else 0,
        library="" if symtab is not None else gdb.solib_name(frame.pc()) or "",
        variables=tuple(locals_of(frame, block)) if variables else (),
    )


def shows_pc(frame: gdb.Frame, line: gdb.Symtab_and_line) -> bool:
    """GDB prints the pc unless the frame stands at the very beginning of a line (stack.c, frame_show_address)."""
    return frame.type() != gdb.INLINE_FRAME and (line.symtab is None or frame.pc() != line.pc)


def block_of(frame: gdb.Frame) -> Optional[gdb.Block]:
    try:
        return frame.block()
    except RuntimeError:  # GDB's way of saying that there is no debug information
        return None


def function_block(block: Optional[gdb.Block]) -> Optional[gdb.Block]:
    while block is not None and block.function is None:
        block = block.superblock
    return block


def arguments(frame: gdb.Frame, block: Optional[gdb.Block]) -> Iterator[Variable]:
    for symbol in function_block(block) or ():
        if symbol.is_argument:
            yield Variable(symbol.print_name, argument_text(frame, symbol))


def locals_of(frame: gdb.Frame, block: Optional[gdb.Block]) -> Iterator[Variable]:
    """The innermost block's first; up to the function's own."""
    while block is not None:
        for symbol in block:
            if symbol.is_variable and not symbol.is_argument:
                yield Variable(symbol.print_name, text_of(frame, symbol))
        if block.function is not None:
            return
        block = block.superblock


def argument_text(frame: gdb.Frame, symbol: gdb.Symbol) -> str:
    """As `set print frame-arguments scalars` has it: "..." for what is no scalar."""
    kind = symbol.type.strip_typedefs() if symbol.type is not None else None
    if kind is not None and kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        kind = kind.target().strip_typedefs()
    if kind is not None and kind.code in AGGREGATES:
        return "..."
    return text_of(frame, symbol)


def text_of(frame: gdb.Frame, symbol: gdb.Symbol) -> str:
    try:
        return str(symbol.value(frame).format_string())
    except gdb.error as error:
        return f"<error: {error}>"
