"""Users' dprintfs, which GDB's Python does not list: read from what GDB prints of them.

Gives for each what followers ask of a user's breakpoint (inferior_followers.py). Changes none, but for ignore counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Optional

from gdbext.gdb_api.breakpoint_locations import Location, printed_locations
from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.run_commands import DebuggerError, execute

# 2       dprintf        keep y   0x0000200040803150 in work at a.c:4
BLOCK = re.compile(r"^(\d+)\s+dprintf\s+(keep|del|dis)\s+([yn])\s.*\n((?:(?!\d+\s).*\n?)*)", re.MULTILINE)
CONDITION = re.compile(r"^\tstop only if (.*)$", re.MULTILINE)
IGNORED = re.compile(r"^\tignore next (\d+) hits$", re.MULTILINE)
COMMAND = re.compile(r"^ {8}(\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Dprintf:
    """One of them as GDB lists it; `command` is what GDB executes where it is hit, None before it stands anywhere."""

    number: int
    enabled: bool
    condition: Optional[str]
    command: Optional[str]
    places: tuple[tuple[int, bool], ...] = ()  # by which a change is seen
    ignored: list[int] = field(default_factory=lambda: [0], compare=False)
    thread: Optional[int] = None
    commands: Optional[str] = None
    temporary: bool = False

    @property
    def pending(self) -> bool:
        """Return whether it stands nowhere."""
        return not self.places

    @property
    def locations(self) -> Sequence[Location]:
        """Return where it stands."""
        return printed_locations(self.number)

    def is_valid(self) -> bool:
        """Return whether GDB has it still; followers of one that is gone are dropped."""
        return True

    @property
    def ignore_count(self) -> int:
        """Return how many hits are to be ignored."""
        return self.ignored[0]

    @ignore_count.setter
    def ignore_count(self, count: int) -> None:
        self.ignored[0] = count
        with suppress(DebuggerError):
            execute(f"ignore {self.number} {count}")


class Dprintfs:
    """All that GDB has, as they were last."""

    def __init__(self) -> None:
        self.known: tuple[Dprintf, ...] = ()
        self.may_be = True  # whether there can be any: it takes time to ask
        self.rest = False  # while ranks are made
        self._disabled_by_gdb: set[int] = set()

    @property
    def are_wanted(self) -> bool:
        """Whether one is to print, be it once GDB has the symbols of its function again."""
        return bool(self._disabled_by_gdb) or any(dprintf.enabled for dprintf in self.known)

    def were_made(self) -> None:
        """After `dprintf`."""
        self.may_be = True

    def have_changed(self) -> bool:
        """Look at them; whether one is new, gone or not as it was."""
        if not self.may_be or self.rest:
            return False
        before, self.known = self.known, self._listed()
        self._note_disabled(before)
        self.may_be = bool(self.known) or speaks_mi()
        return before != self.known

    def _note_disabled(self, before: tuple[Dprintf, ...]) -> None:
        """Note those that GDB has disabled because it found them nowhere; a user's `disable` leaves their places."""
        had_places = {dprintf.number for dprintf in before if dprintf.enabled and dprintf.places}
        off = {dprintf.number for dprintf in self.known if not dprintf.enabled}
        pending = {dprintf.number for dprintf in self.known if dprintf.pending}
        self._disabled_by_gdb = (self._disabled_by_gdb & off) | (had_places & off & pending)

    def _listed(self) -> tuple[Dprintf, ...]:
        """What GDB has; its command has hooks of ours, which would look, too."""
        self.rest = True
        try:
            return tuple(listed())
        finally:
            self.rest = False

    def enable_again(self) -> None:
        """Undo what GDB does to those in a file whose symbols it forgets: it disables them, and no other breakpoints.

        Not before it has the symbols again: until then it would write them where they were.
        """
        if self.known and not self.rest:
            now = self._listed()
            disabled = {dprintf.number for dprintf in now if not dprintf.enabled}
            lost = [dprintf.number for dprintf in self.known if dprintf.enabled and dprintf.number in disabled]
            lost += [
                dprintf.number
                for dprintf in now
                if dprintf.number in disabled & self._disabled_by_gdb and not dprintf.pending
            ]
            self._disabled_by_gdb.difference_update(lost)
            if lost:
                execute(f"enable breakpoints {' '.join(map(str, lost))}")


def listed() -> Iterator[Dprintf]:
    """Yield those that GDB has."""
    for number, _, enabled, rest in BLOCK.findall(execute("info breakpoints") + "\n"):
        condition, ignored, command = CONDITION.search(rest), IGNORED.search(rest), COMMAND.search(rest)
        places = tuple((location.address, location.enabled) for location in printed_locations(int(number)))
        count = [int(ignored[1]) if ignored else 0]
        yield Dprintf(
            number=int(number),
            enabled=enabled == "y",
            condition=condition and condition[1],
            command=command and command[1],
            places=places,
            ignored=count,
        )
