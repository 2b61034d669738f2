"""The command `rank events on|off`: whether GDB says which ranks are created, migrate and end.

Takes the runtime's events as numbers of the debug ABI; prints one line each. It is here and not with the other commands
because the life of breakpoints depends on it: the event function has a breakpoint while events are printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import sentences
from pieglobalsfind.decoders.registry.layout import (
    AFTER_COPIES,
    AFTER_UNPACK,
    BEFORE_COPIES,
    BEFORE_PACK,
    CREATED,
    RANK_EXITED,
)
from pieglobalsfind.errors import UsageError

SENTENCES = {
    BEFORE_COPIES: "ranks are about to be made",
    AFTER_COPIES: "all ranks are made",
    CREATED: "rank {rank} is created",
    BEFORE_PACK: "rank {rank} is about to be packed",
    AFTER_UNPACK: "rank {rank} has arrived",
    RANK_EXITED: "rank {rank} has ended",
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
            gdb.write(f"[{SENTENCES.get(kind, 'event {kind} of rank {rank}').format(kind=kind, rank=rank)}]\n")
