"""Unwinds from the selected thread's frame into a suspended rank's, whose saved registers pose as its caller.

Takes a rank's saved registers; afterwards bt, up, frame, info locals and print work on that rank's stack, in live
processes and core files alike. The target's registers are neither written nor needed to be.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Optional

import gdb
import gdb.unwinder

from gdbext.gdb_api import frame_description
from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.language import is_fortran, language
from gdbext.gdb_api.processor import processor
from gdbext.selection import frame_decorator
from pieglobalsfind.model import Region

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from pieglobalsfind.session.runtime_frames import Folded

    Folding = Callable[[Iterable[Any], Callable[[Any], gdb.Frame]], Folded[Any]]

PAST_MAIN = "backtrace past-main"
BELOW = 64  # bytes: the posing frame must lie on the rank's stack, below (inner to) its innermost frame


@dataclass(frozen=True)
class FrameChain:
    """What tells a rank's frames from others in GDB's chain. `registers` are None while it runs.

    The backtrace ends at `main`, as a process's does, or else at the function `entry`. `live_pc` and `live_sp` are
    those of the thread in whose chain the rank's frames appear, `inferior` is the one that it is in. `needs_past_main`:
    the user does not want to see callers of `main`, and GDB has to look for them.
    """

    rank: int
    registers: Optional[Mapping[int, int]]
    entry: Region
    live_pc: int = 0
    live_sp: int = 0
    inferior: int = 0
    needs_past_main: bool = False


class RankUnwinder(gdb.unwinder.Unwinder):
    """Answers for the thread's own frame while a suspended rank is selected: its caller is the rank."""

    def __init__(self) -> None:
        super().__init__("ranklens")
        self.stack: Optional[FrameChain] = None
        self._is_registered = False

    def register(self) -> None:
        """Make GDB ask it: only once there is something to answer, as GDB looks for all frames again then."""
        if not self._is_registered:
            gdb.unwinder.register_unwinder(None, self, replace=True)
            self._is_registered = True

    def __call__(self, pending_frame: gdb.PendingFrame) -> Optional[gdb.UnwindInfo]:
        """Give GDB the saved registers of the selected rank above the thread's frame."""
        stack = self.stack
        if stack is None or stack.registers is None or stack.inferior != gdb.selected_inferior().num:
            return None
        machine = processor()
        pc, sp = (pending_frame.read_register(name) for name in (machine.pc_name, machine.stack_pointer_name))
        if int(pc) != stack.live_pc or int(sp) != stack.live_sp:
            return None
        below = gdb.Value(stack.registers[machine.stack_pointer] - BELOW).cast(sp.type)
        unwind_info = pending_frame.create_unwind_info(FrameId(below, pc))
        for number, value in stack.registers.items():
            if number < len(machine.register_names):
                name = machine.register_names[number]
                unwind_info.add_saved_register(name, gdb.Value(value).cast(pending_frame.read_register(name).type))
        for name in machine.process_registers:
            with suppress(ValueError, gdb.error):  # this processor, or this core file, has none
                unwind_info.add_saved_register(name, pending_frame.read_register(name))
        return unwind_info


class FrameId:
    """What GDB tells frames apart by; it demands that both are values of the target."""

    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp = sp
        self.pc = pc


class RankFilter:
    """Leaves a rank's own frames in backtraces: no posing frame before them, nothing beyond the rank's entry.

    `folded` leaves out more of them, and says how many.
    """

    def __init__(self, folded: Folding) -> None:
        self._folded = folded
        self.name = "ranklens"
        self.priority = 100
        self.enabled = False
        self.stack: Optional[FrameChain] = None
        register(self)
        frame_decorator.bind()

    def filter(self, decorators: Iterator[Any]) -> Iterator[Any]:
        """Return the decorators of the selected rank's frames, those of the runtime folded."""
        if self.stack is None or not is_chained(self.stack):
            return decorators
        mine = own(self.stack, decorators, lambda decorator: decorator.inferior_frame())
        folded = self._folded(mine, lambda decorator: decorator.inferior_frame())
        if folded.note:
            gdb.write(f"{folded.note}\n")
        shown = map(frame_decorator.RankFrame, folded.shown)
        return shown if speaks_mi() else told_why_it_ends(self.stack, shown)


def register(ours: RankFilter) -> None:
    """Have GDB use it beside users' filters; `info frame-filter` lists these alone, and `disable` finds no others."""
    frames: Any = import_module("gdb.frames")
    users = frames._sort_list

    def sort_list() -> Iterator[Any]:
        filters = [ours, *users()] if ours.enabled else list(users())
        return iter(sorted(filters, key=frames.get_priority, reverse=True))

    frames._sort_list = sort_list


def told_why_it_ends(stack: FrameChain, shown: Iterator[Any]) -> Iterator[Any]:
    """After the last frame say why there is none beyond it, if that is an error: GDB does not where a filter is on."""
    last: Optional[gdb.Frame] = None
    for decorator in shown:
        last = decorator.inferior_frame()
        yield decorator
    if last is None or is_entry(stack, last):
        return
    reason = last.unwind_stop_reason()
    if reason >= gdb.FRAME_UNWIND_UNAVAILABLE:  # the first that is an error
        gdb.write(f"Backtrace stopped: {gdb.frame_stop_reason_string(reason)}\n")


def own(stack: FrameChain, items: Iterable[Any], frame_of: Any) -> Iterator[Any]:
    """Those of `items` that stand for the rank's own frames; `frame_of` gives an item's GDB frame."""
    if stack.registers is not None:
        first = stack.registers[processor().pc], stack.registers[processor().stack_pointer]
        items = itertools.dropwhile(lambda item: place(frame_of(item)) != first, items)
    past_main = bool(gdb.parameter(PAST_MAIN)) and not stack.needs_past_main
    # GDB knows the main program by the language of the innermost frame: where that is Fortran, a backtrace ends at the
    # program's own main program, else at the `main` of the compiler's, which calls it.
    ends_before_main: Optional[bool] = None
    for item in items:
        frame = frame_of(item)
        is_main = frame.name() == "main" and not past_main
        if is_main and ends_before_main:
            return
        if ends_before_main is None:
            ends_before_main = is_fortran(frame)
        yield item
        if is_main or is_entry(stack, frame):
            return


def is_entry(stack: FrameChain, frame: gdb.Frame) -> bool:
    """Whether a frame is of the function that every rank's stack begins with, which may end in a call for good."""
    pc = frame.pc()
    return pc in stack.entry or (pc == stack.entry.end and stack.entry.size > 0 and frame.level() > 0)


def is_chained(stack: FrameChain) -> bool:
    """Whether the frames appear in GDB's chain: not if another thread has been selected since."""
    return stack.registers is None or place(gdb.newest_frame()) == (stack.live_pc, stack.live_sp)


def place(frame: gdb.Frame) -> tuple[int, int]:
    """A frame's pc and stack pointer."""
    return frame.pc(), int(frame.read_register(processor().stack_pointer_name))


def chain() -> Iterator[gdb.Frame]:
    """GDB's frames, innermost first."""
    frame: Optional[gdb.Frame] = gdb.newest_frame()
    while frame is not None and frame.is_valid():
        yield frame
        frame = frame.older()


def speak_as_program(stack: FrameChain) -> None:
    """Have GDB read expressions in the program's language in frames that have none, as those of the MPI library.

    GDB leaves it at that of the last frame with a source file, which may be one of libc's, and before there is one
    takes that of `main` in the program that it debugs, which is the launcher here.
    """
    for frame in itertools.islice(own(stack, chain(), lambda frame: frame), frame_description.MOST_FRAMES):
        if frame.find_sal().symtab is not None:
            frame.select()
            return


def speak(wanted: str, level: int) -> None:
    """Have GDB read expressions in a language, the frame of a level selected.

    GDB takes the language of the frame that is selected, and keeps it where the next one has none.
    """
    for frame in itertools.islice(chain(), frame_description.MOST_FRAMES):
        frame.select()
        if language() == wanted:
            break
    next((frame for frame in chain() if frame.level() == level), gdb.newest_frame()).select()


def select_level(level: int) -> None:
    """Select the frame of a level in GDB's chain, if there is one."""
    for frame in chain() if level else ():
        if frame.level() == level:
            frame.select()
            return
