"""Scan a rank's heap and stack, and libc's blocks, for words that lead into another rank's image.

Takes a job and bytes; gives aligned words. How much of all heaps is scanned is bounded, whatever number of ranks there
are: a scan looks at each word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pieglobalsfind.model import Rank, Redirect
from pieglobalsfind.ranges import range_at

from ..job.job import Job
from .malloc_owner import ranges_of
from .words import WORD, Word

MOST_BYTES, LEAST_BYTES = 64 << 20, 1 << 16  # of all ranks' heaps together, and of one at least
NO_RANK = -1  # whose words are not known


class Image(NamedTuple):
    """[start, end) that is a rank's own."""

    start: int
    end: int
    rank: int


class OtherImages:
    """The images of a job's ranks, where all ranks have the same pages: else equal addresses mean different things."""

    def __init__(self, job: Job) -> None:
        ranks = [rank for rank in job.present if not rank.pages_of]
        self._images = sorted(image for rank in ranks for image in images_of(rank))
        self._low = min((image.start for image in self._images), default=0)
        self._high = max((image.end for image in self._images), default=0)
        self.is_empty = len(ranks) < 2
        self.most_bytes = max(LEAST_BYTES, MOST_BYTES // max(len(ranks), 1))

    def words(self, rank: int, data: bytes, start: int) -> Iterator[Word]:
        """The words of a rank's bytes, which lie at `start`, that lead into another one's image."""
        if self.is_empty:
            return
        first, low, high = -start % WORD, self._low, self._high
        with memoryview(data) as view, view[first : first + (len(data) - first) // WORD * WORD].cast("Q") as words:
            pointers = [(index, value) for index, value in enumerate(words) if low <= value < high]
        for index, value in pointers:
            if self.leads_away(rank, value):
                yield Word(start + first + index * WORD, value)

    def leads_away(self, rank: int, value: int) -> bool:
        """Whether a value is an address in another rank's image."""
        image = range_at(self._images, value) if not self.is_empty else None
        return image is not None and image.rank != rank


def images_of(rank: Rank) -> list[Image]:
    """What is a rank's alone; parts that overlap, such as a block within a heap, are one."""
    images: list[Image] = []
    shared = {
        (placement.storage, placement.storage + placement.size)
        for placement in rank.placements
        if isinstance(placement, Redirect) and placement.is_shared
    }
    for start, end in sorted(set(ranges_of(rank)) - shared):
        if images and start <= images[-1].end:
            images[-1] = Image(images[-1].start, max(images[-1].end, end), rank.rank)
        else:
            images.append(Image(start, end, rank.rank))
    return images
