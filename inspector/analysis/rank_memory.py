"""What is known of each rank beside its state: its memory by category and how often it was switched to.

Takes a rank and its payload; gives numbers, and a sentence for each that can't be had. It reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.model import MIGRATED_OUT, Absent, Rank

from .payload import CATEGORIES, Payload

HEAP, STACK = ("heap_used", "heap_free"), ("stack_used", "stack_unused")


@dataclass(frozen=True)
class Holding:
    """One rank's numbers. `memory` is bytes by category (None: unknown), or why there are none at all."""

    rank: Rank
    switches: Union[int, Absent]
    memory: Union[dict[str, Optional[int]], Absent]
    unknown: tuple[str, ...]

    @property
    def total(self) -> Union[int, Absent]:
        """Bytes of all categories that are known."""
        return self.memory if isinstance(self.memory, Absent) else sum(size or 0 for size in self.memory.values())


def holdings(ranks: Iterable[Rank], payload: Iterable[Payload]) -> tuple[Holding, ...]:
    """One for each rank, in their order."""
    images = {image.rank: image for image in payload}
    return tuple(holding(rank, images.get(rank.rank)) for rank in ranks)


def holding(rank: Rank, image: Optional[Payload]) -> Holding:
    """Return what a rank holds, and why parts of it are unknown."""
    memory = sizes(rank, image) if image is not None else Absent(elsewhere(rank))
    return Holding(rank, rank.switches, memory, tuple(unknown(rank, memory, image)))


def sizes(rank: Rank, image: Payload) -> dict[str, Optional[int]]:
    """Return bytes by category, None where unknown."""
    absent = (*(HEAP if isinstance(rank.heap, Absent) else ()), *(STACK if isinstance(rank.stack, Absent) else ()))
    return {name: None if name in absent else getattr(image, name) for name in CATEGORIES}


def elsewhere(rank: Rank) -> str:
    """Return why a rank's memory is not here."""
    return "its image is in another process" if rank.state == MIGRATED_OUT else "it has no image"


def unknown(rank: Rank, memory: Union[dict[str, Optional[int]], Absent], image: Optional[Payload]) -> Iterator[str]:
    """Yield why parts are unknown."""
    if isinstance(rank.switches, Absent):
        yield f"switches unknown: {rank.switches.reason}"
    if isinstance(memory, Absent):
        yield f"memory unknown: {memory.reason}"
    if image is not None:
        yield from image.notes
