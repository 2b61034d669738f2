"""Replaces frames of a rank that LLDB unwinds wrongly or not at all by libdw's.

A compiler may split a function. LLDB 19 takes all that lies between the parts for that function, and unwinds it by that
function's rules, once it has walked through it on any thread. Its stacks end then, leave out callers, or have frames
whose variables it looks for in the wrong place. elfutils' libdw knows better; LLDB's own commands do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Optional

from pieglobalsfind.dwarf.cfi import CodeFile
from pieglobalsfind.dwarf.constants import DW_TAG_formal_parameter
from pieglobalsfind.dwarf.locals import LocalReader
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import RUNNING, Absent
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.frame import Frame
from pieglobalsfind.stacks.unwind import MAIN, Activation

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def mended(moment: ProcessView, number: int, own: Iterable[Any]) -> Iterator[Any]:
    """LLDB's frames of a rank, innermost first, as long as they are right; then the `Activation`s that are true.

    They are checked by the files' own unwind tables, as far as these describe the stack.
    """
    frames = iter(own)
    innermost = next(frames, None)
    if innermost is None:
        return
    true = _walked(moment, number, innermost)
    level, before = -1, None
    for frame in chain((innermost,), frames):
        if frame.GetCFA() != before:  # else it is inlined into the one before
            level, before = level + 1, frame.GetCFA()
            if level < len(true) and not _is_right(frame, true[level], level == len(true) - 1):
                yield from true[level:]
                return
        yield frame
    yield from true[level + 1 :]


def _is_right(frame: Any, true: Activation, is_last: bool) -> bool:
    """Where the tables know no caller, as after a signal's handler, they know no CFA either: LLDB may know more."""
    return bool(frame.GetPC() == true.pc and (is_last or frame.GetCFA() == true.cfa))


def _walked(moment: ProcessView, number: int, innermost: Any) -> Sequence[Activation]:
    """libdw's frames; none without libdw: then LLDB's are all there is."""
    rank = moment.rank(number)
    try:
        registers = _registers(moment, innermost) if rank.state == RUNNING else moment.contexts.registers(rank)
        return moment.walker.frames_from(rank.stack, registers)[0]
    except RanklensError:  # there is no libdw, or the context can't be read
        return ()


def _registers(moment: ProcessView, innermost: Any) -> dict[int, int]:
    """By DWARF number; of a thread that runs the kernel tells none but LLDB."""
    values = (innermost.FindRegister(name) for name in moment.table.processor.register_names)
    return {number: int(value.GetValueAsUnsigned()) for number, value in enumerate(values) if value.IsValid()}


def described(moment: ProcessView, lost: Iterable[Activation], level: int) -> Iterator[Frame]:
    """What is to be shown of lost frames, the first of which has number `level`: up to `main`, or the rank's entry."""
    for activation in lost:
        takes = _take_arguments(moment, activation)
        for at, call in enumerate(moment.walker.calls(activation.lookup)):
            arguments = "..." if at < len(takes) and takes[at] else ""
            library = "" if call.file else call.library
            yield Frame(level, activation.pc, True, call.function, arguments, call.file, call.line, library)
            level += 1
            if call.function == MAIN:
                return


def hidden(moment: ProcessView, lost: Activation, expression: str) -> Optional[Absent]:
    """Why an expression that names a variable of a lost frame has no value, None if it names none."""
    file, vaddr = _place(moment, lost)
    locals_at = LocalReader(file).at(vaddr) if file is not None else None
    names = {variable.name for variable in locals_at.variables} if locals_at is not None else set()
    name = next((word for word in _IDENTIFIER.findall(expression) if word in names), None)
    if name is None:
        return None
    function = moment.walker.calls(lost.lookup)[0].function
    return Absent(f"{name} is a variable of {function}, whose frame LLDB misreads", "ask GDB for it")


def _take_arguments(moment: ProcessView, lost: Activation) -> list[bool]:
    """Of each call that is active in a frame, innermost first, whether it has parameters; [] if that is unknown."""
    file, vaddr = _place(moment, lost)
    if file is None:
        return []
    calls = ([file.reader.tag(child) for child in file.reader.children(die)] for die in file.active(vaddr))
    return [DW_TAG_formal_parameter in tags for tags in calls]


def _place(moment: ProcessView, lost: Activation) -> tuple[Optional[CodeFile], int]:
    """The file that a frame's code is from, and the p_vaddr of its call there."""
    place = moment.walker.place(lost.lookup)
    return (None, 0) if isinstance(place, Absent) else (moment.walker.file(place[0]), place[1])
