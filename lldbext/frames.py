"""What LLDB knows of a frame, as a value that every debugger could give.

Takes LLDB's frames; gives `Frame`s whose arguments and locals are in GDB's notation. It selects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import lldb

from lldbext import values
from pieglobalsfind.command import Frame

AGGREGATES = (lldb.eTypeClassStruct, lldb.eTypeClassClass, lldb.eTypeClassUnion, lldb.eTypeClassArray)
MOST_FRAMES = 10_000  # a corrupt stack must come to an end
_INNERMOST_PARENTHESES = re.compile(r"\([^()]*\)")


def describe(frame: Any, variables: bool) -> Frame:
    """One frame; with `variables`, its locals too."""
    line = frame.GetLineEntry()
    known = line.IsValid() and line.GetLine() > 0
    return Frame(
        level=frame.GetFrameID(),
        pc=frame.GetPC(),
        shows_pc=not known or line.GetStartAddress() != frame.GetPCAddress(),
        function=function_name(frame),
        arguments=", ".join(arguments(frame)),
        file=str(line.GetFileSpec().fullpath) if known else "",
        line=line.GetLine() if known else 0,
        library="" if known else str(frame.GetModule().GetFileSpec().fullpath or ""),
        variables="\n".join(local_lines(frame)) if variables else "",
    )


def function_name(frame: Any) -> str:
    """Without parameters, as in GDB: `app::Grid<int>::solve`."""
    name = str(frame.GetFunctionName() or "")
    return without_parameters(name) if "(" in name else name


def without_parameters(name: str) -> str:
    """A demangled name without its parameters, wherever they are: `f(int)::{lambda(int)#1}::operator()(int) const`."""
    kept = name.replace("(anonymous namespace)", "\1").replace("operator()", "\2").partition(" const")[0]
    count = 1
    while count:
        kept, count = _INNERMOST_PARENTHESES.subn("", kept)
    return kept.replace("\1", "(anonymous namespace)").replace("\2", "operator()")


def arguments(frame: Any) -> Iterator[str]:
    """`n=4` for each; structures and arrays are shortened to `...`, as in GDB's backtraces."""
    for one in frame.GetVariables(True, False, False, False):
        kind = one.GetType().GetCanonicalType()
        shown = "..." if kind.GetTypeClass() in AGGREGATES else values.text(one, nested=True)
        yield f"{one.GetName()}={unavailable(one) or shown}"


def local_lines(frame: Any) -> Iterator[str]:
    """`name = value`, the innermost block's first."""
    block, outermost = frame.GetBlock(), frame.GetFrameBlock()
    while block.IsValid():
        for one in block.GetVariables(frame, False, True, True, lldb.eNoDynamicValues):
            yield f"{one.GetName()} = {unavailable(one) or values.text(one, nested=True)}"
        if block == outermost:
            return
        block = block.GetParent()


def unavailable(value: Any) -> str:
    """What stands for a value that the compiler did not keep, in GDB's words."""
    error = value.GetError().GetCString() or ""
    return "<optimized out>" if value.GetError().Fail() and "not available" in error else ""
