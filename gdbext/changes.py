"""Changes of what is watched that GDB does not find.

Takes users' watchpoints on a place; tells which of them have changed since GDB has told last. Whenever symbols move GDB
reads watched values anew, and what another thread has written by then, whose stop it has not handled yet, is no change
to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import gdb

from gdbext.quiet import execute
from pieglobalsfind.facts import dataclass, replace
from pieglobalsfind.hints import TYPE_CHECKING, Optional

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.addressed import Place


@dataclass(frozen=True)
class Known:
    """What is at a place that is watched, as GDB has told it last."""

    inferior: int
    place: Place
    content: bytes
    hits: int = 0


@dataclass(frozen=True)
class Change:
    """One that GDB will not find."""

    number: int
    expression: str
    before: Known
    now: bytes

    def text(self) -> str:
        """In GDB's words."""
        language = gdb.parameter("language")
        execute("set language c")
        try:
            kind = gdb.parse_and_eval(self.before.place.text).type
            old, new = (gdb.Value(one, kind).format_string() for one in (self.before.content, self.now))
        finally:
            execute(f"set language {language}")
        return f"\nHardware watchpoint {self.number}: {self.expression}\n\nOld value = {old}\nNew value = {new}\n"


class Changes:
    """Of all users' watchpoints of one GDB."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}
        self.unseen: list[Change] = []

    def begin(self, number: int, place: Optional[Place]) -> None:
        """A watchpoint is new; `place` is None if it watches several."""
        here = gdb.selected_inferior().num
        if place is not None:
            known = Known(here, place, b"")
            self._known[number] = replace(known, content=read(known))

    def go_on(self, number: int, successor: int) -> None:
        """Another watchpoint takes over."""
        if number in self._known:
            self._known[successor] = replace(self._known.pop(number), hits=0)

    def forget(self, number: int) -> None:
        self._known.pop(number, None)

    def look(self) -> None:
        """The user may have changed what is watched."""
        here = gdb.selected_inferior().num
        self._known.update(
            {number: replace(one, content=read(one)) for number, one in self._known.items() if one.inferior == here}
        )

    def has_told(self, hit: Iterable[gdb.Breakpoint]) -> None:
        """GDB has stopped, and told of these."""
        for one in hit:
            known = self._known.get(one.number)
            if known is not None:
                self._known[one.number] = replace(known, content=read(known), hits=one.hit_count)

    @contextmanager
    def unmissed(self) -> Iterator[None]:
        """GDB's symbols change inside, and it reads watched values anew.

        It would not find them changed then by a thread of which it has yet to handle the stop: other threads run while
        one has stopped at a breakpoint whose condition is tested.
        """
        inferior = gdb.selected_inferior()
        now: dict[Place, bytes] = {}  # another watchpoint on the same may take over
        if self._known and len(inferior.threads()) > 1:
            now = {known.place: read(known) for known in self._known.values() if known.inferior == inferior.num}
        yield
        users = {one.number: one for one in gdb.breakpoints()} if now else {}
        for number, known in list(self._known.items()):
            found = now.get(known.place, known.content)
            if number in users and known.inferior == inferior.num and found != known.content:
                user = users[number]
                self._known[number] = replace(known, content=found, hits=user.hit_count)
                if user.hit_count == known.hits and is_meant(user):  # else GDB has found it, and ignored it
                    self.unseen.append(Change(number, user.expression or "", known, found))


def read(known: Known) -> bytes:
    """Zeros where nothing is."""
    try:
        return bytes(gdb.selected_inferior().read_memory(known.place.address, known.place.size))
    except gdb.error:
        return bytes(known.place.size)


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
