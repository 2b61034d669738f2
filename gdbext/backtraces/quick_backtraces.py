"""Backtraces of many ranks without GDB's frames: the text that `bt` prints with each rank selected, not selecting it.

Takes ranks and a backtrace command. GDB prints the backtraces of ranks in which there is a frame that it has not shown
yet; all the others are filled into what it has shown (frame_lines.py). Where that is unknown, GDB's frames say it.

This spares moving GDB's symbols to each rank, after which GDB reads the functions of its files again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Optional, Protocol, TypeVar

import gdb

from gdbext.backtraces.argument_text import FrameMemory
from gdbext.backtraces.frame_lines import FAILURES, FrameLines, GdbCall, GdbStack, Place
from gdbext.backtraces.frame_style import BACKTRACE
from gdbext.gdb_api.language import FORTRAN_FILE, always_ends_at_main_program
from gdbext.gdb_api.run_gdb import execute
from pieglobalsfind.debugger.address_names import Addresses
from pieglobalsfind.dwarf.call_arguments import ArgumentReader
from pieglobalsfind.dwarf.expression import UnsupportedError
from pieglobalsfind.model import Absent, Rank, Rebase, TlsBlock
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import Folded
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import MAIN

LINE = re.compile(r"#(\d+)\s")
FIRST = 1  # the level of a suspended rank's innermost frame: 0 is the posing one

Item = TypeVar("Item")


class FrameSource(Protocol):
    """How GDB's frames are asked, and what the user wants to see of them."""

    def moment(self) -> ProcessView:
        """Return the selected inferior between two stops."""

    def visiting(self, rank: int) -> AbstractContextManager[None]:
        """Visit a rank: its frames and symbols are GDB's inside the block."""

    def own_frames(self) -> Iterator[gdb.Frame]:
        """Yield the rank's own frames, innermost first."""

    def folded_at(self, items: Iterable[Item], pc_of: Callable[[Item], int]) -> Folded[Item]:
        """Fold the runtime's frames, as the user's setting has it."""

    @property
    def in_focus(self) -> Optional[int]:
        """Return the rank whose symbols GDB has, or None."""


class QuickBacktraces:
    """While one command visits ranks."""

    def __init__(self, face: FrameSource) -> None:
        self._face = face
        self._moment = face.moment()
        self._lines = FrameLines()
        self._readers: dict[str, ArgumentReader] = {}
        self._is_trusted = is_plain_gdb()
        number = self._moment.table.processor.stack_pointer
        self._busy = [registers[number] for registers in self._of_threads() if number in registers]

    def _of_threads(self) -> Iterator[Mapping[int, int]]:
        for thread in self._moment.target.threads():
            if not isinstance(thread.registers, Absent):
                yield thread.registers

    def text(self, number: int, command: str) -> str:
        """What the command prints with the rank selected; raises as visiting it does."""
        try:
            walked = self._walked(number) if self._is_trusted else None
            if walked is not None:
                note, calls = self._shown(walked, command)
                if not all(self._lines.knows(walked, call) for call in calls):
                    return self._learned(walked, command, note, calls)
                return self._filled(walked, note, calls)
        except FAILURES:
            pass  # GDB's own frames tell it, or why not
        with self._face.visiting(number):
            return execute(command)

    # ---- a rank's frames ----

    def _walked(self, number: int) -> Optional[GdbStack]:
        """The frames of a rank that stands still, and whose memory and symbols are where GDB looks for them."""
        rank, focus = self._moment.rank(number), self._face.in_focus
        if focus is None or not is_simple(rank) or not is_simple(self._moment.rank(focus)):
            return None
        stack = rank.stack
        if isinstance(stack, Absent) or any(one in stack for one in self._busy):
            return None
        walker = self._moment.walker
        found = walker.activations(rank)
        if found is None:
            return None
        places = tuple(self._place(activation.lookup) for activation in found[0])
        readers = [self._reader(path) for path, _ in places]
        return GdbStack(rank, *found, places, readers, self._frame_memory(rank, found[1]))

    def _frame_memory(self, rank: Rank, memory: Memory) -> FrameMemory:
        return FrameMemory(Addresses.of(rank, self._moment.rank(self._face.in_focus or 0)), memory)

    def _place(self, pc: int) -> Place:
        found = self._moment.walker.place(pc)
        if isinstance(found, Absent):
            raise UnsupportedError(found.reason)
        return found

    def _reader(self, path: str) -> ArgumentReader:
        if path not in self._readers:
            file = self._moment.walker.file(path)
            if file is None:
                raise UnsupportedError(path)
            self._readers[path] = ArgumentReader(file)
        return self._readers[path]

    def _shown(self, walked: GdbStack, command: str) -> tuple[str, list[GdbCall]]:
        """How many frames are folded, in words, and the calls that the command shows."""
        folded = self._face.folded_at(self._calls(walked), lambda call: walked.activations[call.frame].lookup)
        calls, match = list(folded.shown), re.fullmatch(BACKTRACE, command)
        count = int(match.group(1) or 0) if match is not None else 0
        return folded.note, calls[:count] if count > 0 else calls[count:]

    def _calls(self, walked: GdbStack) -> Iterator[GdbCall]:
        """All calls down to `main`; raises `UnsupportedError` if the stack ends before."""
        level = itertools.count(FIRST)
        for number, activation in enumerate(walked.activations):
            names = self._moment.walker.calls(activation.lookup)
            for inner, call in enumerate(names):
                is_compilers = number > 0 and call.function == MAIN and re.search(FORTRAN_FILE, call.file)
                if is_compilers and always_ends_at_main_program():
                    return
                yield GdbCall(number, inner, next(level))
                if call.function == MAIN:
                    return
        raise UnsupportedError("a stack without main")

    # ---- its text ----

    def _filled(self, walked: GdbStack, note: str, calls: list[GdbCall]) -> str:
        with self._lines.languages.restored():
            lines = [self._lines.text(walked, call) for call in calls]
        return (f"{note}\n" if note else "") + "".join(lines)

    def _learned(self, walked: GdbStack, command: str, note: str, calls: list[GdbCall]) -> str:
        """GDB's own text, its lines kept as patterns; trust ends where it shows other frames than were expected."""
        with self._face.visiting(walked.rank.rank):
            text = execute(command)
            frames = {frame.level(): frame for frame in self._face.own_frames()}
            walked.frame_memory = self._frame_memory(walked.rank, walked.memory)
            lines = text.splitlines(keepends=True)
            levels = [int(match.group(1)) for match in map(LINE.match, lines) if match is not None]
            expected = [note + "\n"] if note else []
            self._is_trusted = levels == [call.level for call in calls] and lines[: -len(calls)] == expected
            if self._is_trusted:
                with self._lines.languages.restored():
                    for call, line in zip(calls, lines[-len(calls) :]):
                        self._lines.learn(walked, call, frames[call.level], line)
        return text


def is_simple(rank: Rank) -> bool:
    """Whether each of the rank's variables is where its copies are, or is thread-local."""
    return not rank.address_space and all(isinstance(placement, (Rebase, TlsBlock)) for placement in rank.placements)


def is_plain_gdb() -> bool:
    """Whether GDB can print values as its frames do (from GDB 13), and no other frame filter changes backtraces."""
    if not hasattr(gdb.Frame, "language") or gdb.parameter("language") != "auto":
        return False
    places: list[Any] = [gdb, gdb.current_progspace(), *gdb.objfiles()]
    return not any(one.enabled for place in places for name, one in place.frame_filters.items() if name != "ranklens")
