"""GDB's momentary breakpoints, for what a thread is on its way to: the ends of step, next, finish, until and advance.

GDB reports no step that goes on, but lists these: it numbers all of them 0. For the end of an inlined function it
has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import DebuggerError, execute

LISTED = r"0(?:\.\d+)?\s"
LOCATION = r"0\.1\s.*?\b(0x[0-9a-f]+)"


class InlineFinish:
    """Whether a `finish` out of an inlined function goes on, which GDB does step by step."""

    inferior = 0

    @classmethod
    def begin(cls) -> None:
        """Before `finish`."""
        if gdb.selected_frame().type() == gdb.INLINE_FRAME:
            cls.inferior = gdb.selected_inferior().num

    @classmethod
    def end(cls) -> None:
        """Something has stopped, or is no more."""
        cls.inferior = 0


class Resumed:
    """The thread that the user's last command has let run: the one that momentary breakpoints are for."""

    _thread: Optional[gdb.InferiorThread] = None
    _has_stopped = True

    @classmethod
    def note(cls) -> bool:
        """Something runs; it need not be the user's command that has it run. Whether it does since a stop."""
        is_first = cls._has_stopped
        if is_first:
            cls._thread, cls._has_stopped = gdb.selected_thread(), False
        return is_first

    @classmethod
    def end(cls) -> None:
        """Something has stopped."""
        cls._has_stopped = True

    @classmethod
    def is_gone(cls) -> bool:
        """Return whether the thread has ended: GDB dies of SIGSEGV where it lists what it still has for it.

        GDB drops that after the next stop. Until then `follow-fork-mode child` may have detached from the thread.
        """
        return cls._thread is not None and not cls._thread.is_valid()


def is_stepping() -> bool:
    """Whether a thread of the selected inferior is on its way to the end of a command, while another may have stopped.

    Not in the midst of `stepi`, which is over after an instruction. GDB makes ready for a longjmp in all others.
    """
    return InlineFinish.inferior == gdb.selected_inferior().num or any(True for _ in _lines())


def own_locations() -> Iterator[int]:
    """Where GDB has breakpoints of its own."""
    for line in _lines():
        match = re.match(LOCATION, line)
        if match is not None:
            yield int(match[1], 16)


def _lines() -> Iterator[str]:
    if Resumed.is_gone():
        return iter(())
    try:
        listed = execute("maint info breakpoints 0")
    except DebuggerError:  # a GDB that takes no 0 for a number
        listed = execute("maint info breakpoints")
    return (line for line in listed.splitlines() if re.match(LISTED, line))
