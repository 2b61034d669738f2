"""After how many more hits GDB disables a breakpoint: what `enable once` and `enable count` ask for.

Takes users' breakpoints; reads what GDB lists of them, as its Python does not tell. GDB counts only the hits at places
where it has put a breakpoint itself: those of followers are added to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import DebuggerError, execute

# 1       breakpoint     dis  y   0x0000555555555140 in tick at ticks.c:3
LISTED = r"(?m)^\d+\s.*?\s(?:keep|dis|del)\s+[yn]\s.*\n((?:[^\d-].*\n?)*)"
IS_DISABLED_BY_HITS = r"^\d+\s.*?\sdis\s+[yn]\s"
LEFT = r"\tdisable after (?:next|additional) (\d+) hits"


def count_left(number: int) -> Optional[int]:
    """The hits that are left until GDB disables the breakpoint of a number; None if it does not disable it so."""
    listed = re.search(LISTED, execute(f"maint info breakpoints {number}"))
    if listed is None or not re.match(IS_DISABLED_BY_HITS, listed[0]):
        return None
    count = re.search(LEFT, listed[1])
    return int(count[1]) if count else 1


@contextmanager
def kept(users: Sequence[gdb.Breakpoint]) -> Iterator[None]:
    """Breakpoints are disabled and enabled inside, by which GDB forgets how many hits are left."""
    left = {user: count_left(user.number) or 1 for user in users if user.visible}
    yield
    for user, count in left.items():
        if user.is_valid() and count > 1:
            with suppress(DebuggerError):
                execute(f"enable count {count} {user.number}")


class EnableCounts:
    """Of all users' breakpoints of one GDB, by their numbers."""

    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        self._untold: set[int] = set()

    def learn(self, user: gdb.Breakpoint) -> None:
        """The user, or a hit that GDB has counted, may have changed it; runs a command of GDB's."""
        number = user.number
        self._untold.discard(number)
        self._left.pop(number, None)
        left = count_left(number) if number > 0 else None
        if left is not None:
            self._left[number] = left

    def hit(self, user: gdb.Breakpoint) -> None:
        """A follower has stopped for it."""
        left = self._left.get(user.number)
        if left is not None:
            self._left[user.number] = left - 1
            if left <= 1:
                user.enabled = False
            else:
                self._untold.add(user.number)

    def tell(self) -> None:
        """Have GDB know what is left; runs commands of GDB's."""
        untold, self._untold = self._untold, set()
        for number in untold:
            with suppress(DebuggerError):  # it is no more
                execute(f"enable count {self._left[number]} {number}")

    def forget(self, number: int) -> None:
        """Drop what is noted of a deleted breakpoint."""
        self._left.pop(number, None)
        self._untold.discard(number)
