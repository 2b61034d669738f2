"""Finds changes of watched values that GDB misses because symbols have moved between ranks.

Takes users' watchpoints on a place; tells which of them have changed since GDB's last report. Whenever symbols move GDB
reads watched values again, and what another thread has written by then, whose stop GDB has not handled yet, is not a
change to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional

import gdb

from gdbext.gdb_api.language import in_c

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.watchpoints.expression_by_address import ValuePlace


@dataclass(frozen=True)
class Watched:
    """A place, or an expression by addresses."""

    place: Optional[ValuePlace]
    expression: str

    def read(self) -> bytes:
        """What is there, or the value's text; zeros where nothing is."""
        try:
            if self.place is None:
                return gdb.parse_and_eval(self.expression).format_string().encode()
            return bytes(gdb.selected_inferior().read_memory(self.place.address, self.place.size))
        except gdb.error:
            return bytes(1 if self.place is None else self.place.size)

    def text(self, content: bytes) -> str:
        """What has been read, as GDB shows it."""
        if self.place is None:
            return content.decode()
        with in_c():
            return gdb.Value(content, gdb.parse_and_eval(self.place.text).type).format_string()


@dataclass(frozen=True)
class WatchedValue:
    """What is watched, as GDB has told it last, in a rank."""

    inferior: int
    rank: int
    watched: Watched
    content: bytes
    hits: int = 0


@dataclass(frozen=True)
class Change:
    """One that GDB will not find."""

    number: int
    expression: str
    before: WatchedValue
    now: bytes

    def text(self) -> str:
        """In GDB's words."""
        old, new = map(self.before.watched.text, (self.before.content, self.now))
        return f"\nHardware watchpoint {self.number}: {self.expression}\n\nOld value = {old}\nNew value = {new}\n"


class Changes:
    """Of all users' watchpoints of one GDB."""

    def __init__(self) -> None:
        self._values: dict[int, WatchedValue] = {}
        self.unseen: list[Change] = []

    def begin(self, number: int, rank: int, place: Optional[ValuePlace], expression: Optional[str]) -> None:
        """A watchpoint is new; `place` is None if it watches several, `expression` if these are unknown."""
        here = gdb.selected_inferior().num
        if place is not None or expression is not None:
            watched = Watched(place, expression or "")
            self._values[number] = WatchedValue(here, rank, watched, watched.read())

    def go_on(self, number: int, successor: int) -> None:
        """Another watchpoint takes over."""
        if number in self._values:
            self._values[successor] = replace(self._values.pop(number), hits=0)

    def forget(self, number: int) -> None:
        """Drop what is known of a deleted watchpoint."""
        self._values.pop(number, None)

    def look(self) -> None:
        """The user may have changed what is watched."""
        here = gdb.selected_inferior().num
        self._values.update(
            {
                number: replace(value, content=value.watched.read())
                for number, value in self._values.items()
                if value.inferior == here
            }
        )

    def has_told(self, hit: Iterable[gdb.Breakpoint]) -> None:
        """GDB has stopped, and reported these."""
        for gdb_breakpoint in hit:
            value = self._values.get(gdb_breakpoint.number)
            if value is not None:
                self._values[gdb_breakpoint.number] = replace(
                    value, content=value.watched.read(), hits=gdb_breakpoint.hit_count
                )

    def is_change(self, user: gdb.Breakpoint, expression: str) -> bool:
        """Whether what a watchpoint is for has changed; it is to be told then, unless the user ignores it."""
        value = self._values[user.number]
        content = value.watched.read()
        if content == value.content:
            return False
        self._values[user.number] = replace(value, content=content)
        if user.ignore_count == 0:
            self.unseen.append(Change(user.number, expression, value, content))
        return True

    def begin_again(self, number: int) -> None:
        """The user has enabled or disabled a watchpoint: what changed meanwhile is not told."""
        value = self._values.get(number)
        if value is not None:
            self._values[number] = replace(value, content=value.watched.read())

    @contextmanager
    def unmissed(self) -> Iterator[None]:
        """GDB's symbols change inside, and it reads watched values again.

        It would not find them changed then by a thread of which it has yet to handle the stop: other threads run while
        one has stopped at a breakpoint whose condition is tested.
        """
        yield
        inferior = gdb.selected_inferior()
        if not self._values or len(inferior.threads()) < 2:
            return
        users = {gdb_breakpoint.number: gdb_breakpoint for gdb_breakpoint in gdb.breakpoints()}
        for number, value in list(self._values.items()):
            content = value.watched.read() if value.inferior == inferior.num and number in users else value.content
            if content != value.content:
                user = users[number]
                self._values[number] = replace(value, content=content, hits=user.hit_count)
                if user.hit_count == value.hits and is_meant(user):  # else GDB has found it, and ignored it
                    self.unseen.append(Change(number, user.expression or "", value, content))


def is_meant(user: gdb.Breakpoint) -> bool:
    """Whether a watchpoint stops for a change, by its condition and its ignore count."""
    if not user.enabled or user.type == gdb.BP_READ_WATCHPOINT:
        return False
    with suppress(gdb.error):
        if user.condition and not gdb.parse_and_eval(user.condition):
            return False
    if user.ignore_count > 0:
        user.ignore_count -= 1
        return False
    return True
