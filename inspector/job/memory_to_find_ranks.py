"""List the memory by which a runtime's ranks can be found again, for a snapshot.

Takes a `Job`; finds its ranks once more, and what they wait for; gives the addresses that it read. It keeps no bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Optional

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.target import Target, read_many

from .job import Job, job_of, with_waits

SMALL = 1 << 16  # bytes; a larger read is a search
AROUND = 1 << 10  # bytes before and after a thread's beginning, by whose form it is found
FOUND = ("runtime", "hook")  # the tiers of ranks that runtimes' own data describe


class ReadRecorder:
    """A target that remembers what was read of it in small pieces; in all else it is the one that it was made of."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.places: set[tuple[int, int]] = set()  # (start, end)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def read(self, address: int, size: int) -> bytes:
        """Read memory and note the range."""
        data = self._target.read(address, size)
        self._note(address, size)
        return data

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """Read many ranges and note them."""
        for address, size in places:
            self._note(address, size)
        return read_many(self._target, places)

    def _note(self, address: int, size: int) -> None:
        if 0 < size <= SMALL and address >= 0:
            self.places.add((address, address + size))


def places(job: Job) -> Iterator[tuple[int, int]]:
    """(start, end) of what has to be known for the same ranks, and what they wait for, to be found again."""
    if all(rank.evidence.tier not in FOUND for rank in job.table.ranks):
        return
    recorder = ReadRecorder(job.target)
    with suppress(RanklensError):
        table = with_waits(job_of(recorder)).table
        yield from ((rank.thread - AROUND, rank.thread + AROUND) for rank in table.ranks if rank.thread > AROUND)
    yield from recorder.places
