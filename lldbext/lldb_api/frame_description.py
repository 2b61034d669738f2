"""Describes LLDB's frames as the `Frame`s of pieglobalsfind, with arguments and locals as text.

Takes LLDB's frames; gives `Frame`s whose arguments and locals are in GDB's notation. What is the same in every rank at
a place in the code is asked once. It selects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import lldb

from lldbext.lldb_api import value_text
from pieglobalsfind.elf.demangle import without_result
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.frame import Frame

SHORT = "..."
NOT_KEPT = ("not available", "DW_OP_entry_value")  # LLDB's words for it
AGGREGATES = (lldb.eTypeClassStruct, lldb.eTypeClassClass, lldb.eTypeClassUnion, lldb.eTypeClassArray)
MOST_FRAMES = 10_000  # a corrupt stack must come to an end
_INNERMOST_PARENTHESES = re.compile(r"\([^()]*\)")


@dataclass(frozen=True)
class FramePlace:
    """A place in the code, whichever rank is there; `arguments`: each one's name, and whether its value says all."""

    shows_pc: bool
    function: str
    file: str
    line: int
    library: str
    arguments: tuple[tuple[str, bool], ...]


class Describer:
    """Describes frames of one moment."""

    def __init__(self, moment: ProcessView) -> None:
        self._translator = moment.translator
        self._objects = moment.table.objects
        self._places: dict[tuple[int, int], FramePlace] = {}

    def described(self, own: Iterable[Any], variables: bool) -> Iterator[Frame]:
        """A stack's frames, innermost first; with `variables`, their locals too."""
        before, inner = -1, 0
        for frame in own:
            pc = frame.GetPC()
            inner = inner + 1 if pc == before else 0  # of functions that are inlined at one place
            before = pc
            place = self._place(frame, pc, inner)
            yield Frame(
                level=frame.GetFrameID(),
                pc=pc,
                shows_pc=place.shows_pc,
                function=place.function,
                arguments=", ".join(arguments(frame, place.arguments)),
                file=place.file,
                line=place.line,
                library=place.library,
                variables="\n".join(local_lines(frame)) if variables else "",
            )

    def _place(self, frame: Any, pc: int, inner: int) -> FramePlace:
        owner = self._translator.owner(pc)
        key = (pc if owner.original is None else owner.original), inner
        frame_place = self._places.get(key)
        if frame_place is None:
            path = owner.path if owner.object is None else self._objects[owner.object].path
            frame_place = self._places[key] = place_of(frame, path)
        return frame_place


def place_of(frame: Any, path: str) -> FramePlace:
    """`path` is that of the file whose code it is: LLDB's module is a link to it, or a copy."""
    line = frame.GetLineEntry()
    has_line = line.IsValid() and line.GetLine() > 0
    return FramePlace(
        shows_pc=not has_line or line.GetStartAddress() != frame.GetPCAddress(),
        function=function_name(frame),
        file=str(line.GetFileSpec().fullpath) if has_line else "",
        line=line.GetLine() if has_line else 0,
        library="" if has_line else path or str(frame.GetModule().GetFileSpec().fullpath or ""),
        arguments=tuple((str(variable.GetName()), value_text.is_plain(variable)) for variable in variables_of(frame)),
    )


def function_name(frame: Any) -> str:
    """Without parameters, as in GDB: `app::Grid<int>::solve`; C's functions in C++ files are `::f` for LLDB."""
    name = str(frame.GetFunctionName() or "").removeprefix("::")
    return without_parameters(name) if "(" in name else name


def without_parameters(name: str) -> str:
    """A demangled name without its parameters, wherever they are: `f(int)::{lambda(int)#1}::operator()(int) const`."""
    kept = name.replace("(anonymous namespace)", "\1").replace("operator()", "\2").partition(" const")[0]
    count = 1
    while count:
        kept, count = _INNERMOST_PARENTHESES.subn("", kept)
    return without_result(kept.replace("\1", "(anonymous namespace)").replace("\2", "operator()"))


def arguments(frame: Any, names: tuple[tuple[str, bool], ...]) -> Iterator[str]:
    """`n=4` for each; structures and arrays are shortened to `...`, as in GDB's backtraces."""
    for (name, is_plain), variable in zip(names, variables_of(frame)):
        plain = variable.GetValue() if is_plain else None
        yield f"{name}={argument(variable) if plain is None else plain}"


def argument(value: Any) -> str:
    """Return an argument's value as a frame's line shows it."""
    is_short = value.GetType().GetCanonicalType().GetTypeClass() in AGGREGATES
    return unavailable(value) or (SHORT if is_short else value_text.text(value, nested=True))


def variables_of(frame: Any) -> Any:
    """A frame's arguments; those of one place are the same in all ranks."""
    return frame.GetVariables(True, False, False, False)


def local_lines(frame: Any) -> Iterator[str]:
    """`name = value`, the innermost block's first."""
    block, outermost = frame.GetBlock(), frame.GetFrameBlock()
    while block.IsValid():
        for variable in block.GetVariables(frame, False, True, True, lldb.eNoDynamicValues):
            yield f"{variable.GetName()} = {unavailable(variable) or value_text.text(variable, nested=True)}"
        if block == outermost:
            return
        block = block.GetParent()


def unavailable(value: Any) -> str:
    """What stands for a value that the compiler did not keep, in GDB's words."""
    error = value.GetError().GetCString() or ""
    return "<optimized out>" if value.GetError().Fail() and any(sentence in error for sentence in NOT_KEPT) else ""
