"""`rank events on|off`: whether GDB says which ranks are created, migrate and end.

Takes the runtime's events as numbers of the debug ABI; prints one line each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import sentences
from pieglobalsfind.errors import UsageError

KINDS = {
    1: "ranks are about to be made",
    2: "all ranks are made",
    3: "rank {rank} is created",
    4: "rank {rank} is about to be packed",
    5: "rank {rank} has arrived",
    6: "rank {rank} has ended",
}


class RankEvents(gdb.Command):
    """Print which ranks are created, migrate and end, as it happens.
    Usage: rank events on|off"""

    def __init__(self) -> None:
        super().__init__("rank events", gdb.COMMAND_RUNNING)
        self._on = False
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_on(self) -> bool:
        """Return whether events of ranks are printed."""
        return self._on

    def complete(self, text: str, word: Optional[str]) -> list[str]:
        """`word` is None where GDB asks first how to split the text into words."""
        return [] if word is None else [choice for choice in ("on", "off") if choice.startswith(word)]

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Switch the lines of rank events on or off, or print which it is."""
        with sentences():
            word = argument.strip()
            if word not in ("", "on", "off"):
                raise UsageError("`rank events` takes on or off")
            if word:
                self._on = word == "on"
                self.on_change()
            gdb.write(f"Rank events are {'on' if self._on else 'off'}.\n")

    def tell(self, kind: int, rank: int) -> None:
        """One event of the runtime."""
        if self._on:
            gdb.write(f"[{KINDS.get(kind, 'event {kind} of rank {rank}').format(kind=kind, rank=rank)}]\n")
