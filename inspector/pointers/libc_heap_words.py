"""Find words in the C library's heap that name an original or lead into a rank's image, and the ranks that own them.

Takes the originals; looks through the heap once, if the program's `malloc` is libc's, whatever number of ranks there
are. A rank owns a block that its typed pointers lead to. Which rank owns a block that no rank's typed pointers lead to
is unknown: the number of such words is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Optional

from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact

from .findings import LIBC_HEAP, PointerFinding
from .libc_heap import LibcHeap
from .malloc_owner import is_libc, ranges_of_ranks
from .original_data import Originals
from .typed_heap_objects import AllocatedRegion, Reached
from .words import WORD, Word
from .words_into_other_images import MOST_BYTES, NO_RANK, OtherImages

MOST_WORDS = 100_000


class LibcWords:
    """What libc's heap has for all ranks. Nothing is read before it is asked for."""

    def __init__(self, originals: Originals, images: OtherImages) -> None:
        self._originals = originals
        self._images = images
        self._job = originals.job
        self._unscanned = 0  # bytes that were not searched for pointers into ranks
        self._ranks: dict[int, set[int]] = {}  # by the address of a word, the ranks whose pointers lead to its block

    @cached_property
    def _heap(self) -> Optional[LibcHeap]:
        if not is_libc(self._job):
            return None
        return LibcHeap(self._job.target, ranges_of_ranks(self._job))

    @property
    def words(self) -> list[Word]:
        """All that name an original, ascending; also in mappings that no block was found in yet."""
        return self._scanned[0]

    @property
    def is_empty(self) -> bool:
        """Whether it has no words to judge."""
        return not any(self._scanned)

    @cached_property
    def _scanned(self) -> tuple[list[Word], list[Word]]:
        """The words that name an original, and those that lead into a rank's image, each ascending."""
        chosen: list[Word] = []
        into_ranks: list[Word] = []
        left = MOST_BYTES
        for start, data, size in self._heap.pieces() if self._heap is not None else ():
            words = (word for word in self._originals.words(data, start, self._originals.ranges))
            chosen += islice((word for word in words if word.address < start + size), MOST_WORDS + 1 - len(chosen))
            leading = self._images.words(NO_RANK, data[: min(size, left)], start)
            into_ranks += islice(leading, MOST_WORDS + 1 - len(into_ranks))
            self._unscanned += max(size - left, 0)
            left = max(left - size, 0)
        return sorted(chosen[:MOST_WORDS]), sorted(into_ranks[:MOST_WORDS])

    @cached_property
    def _into_ranks(self) -> dict[int, list[tuple[AllocatedRegion, Word]]]:
        """The words that lead into a rank's image, by the start of their block.

        A block that is mapped by itself is not known before a pointer leads there: such blocks are left out.
        """
        by_block: dict[int, list[tuple[AllocatedRegion, Word]]] = {}
        for word in self._scanned[1]:
            block = self.block_at(word.address)
            if block is not None and word.address + WORD <= block.end:
                by_block.setdefault(block.start, []).append((block, word))
        return by_block

    def block_at(self, address: int) -> Optional[AllocatedRegion]:
        """The block in use that has the byte at an address."""
        return self._heap.at(address) if self._heap is not None else None

    def reached(self, rank: int, reached: Reached) -> Iterator[tuple[AllocatedRegion, Word]]:
        """The words in those of libc's blocks that a rank's typed pointers lead to."""
        for word, block in self._blocks:
            if word.address + WORD <= block.end and reached.has(block):
                self._ranks.setdefault(word.address, set()).add(rank)
                yield block, word
        for start in reached.starts:
            for block, word in self._into_ranks.get(start, ()):
                if self._images.leads_away(rank, word.value):
                    self._ranks.setdefault(word.address, set()).add(rank)
                    yield block, word

    @property
    def _blocks(self) -> Iterator[tuple[Word, AllocatedRegion]]:
        """Each word that is in a block in use, and the block."""
        for word in self.words:
            block = self.block_at(word.address)
            if block is not None:
                yield word, block

    def checked(self, pointer_finding: PointerFinding) -> PointerFinding:
        """A finding, without a right value if there is none for all ranks that share the block."""
        ranks = self._ranks.get(pointer_finding.address, set())
        if pointer_finding.object != LIBC_HEAP or len(ranks) < 2:
            return pointer_finding
        return replace(pointer_finding, right=Absent(f"ranks {compact(sorted(ranks))} share the block"))

    def unknown(self) -> Iterator[Absent]:
        """What was not read; whose it is is not known."""
        heap = self._heap
        if heap is None:
            return
        left = sum(word.address not in self._ranks for word, _ in self._blocks)
        if left:
            yield Absent(
                f"ranks allocate in libc's heap: {left} words there name an original in blocks to which no typed "
                "pointer of a rank leads, so which rank owns them is unknown; some are the loader's"
            )
        if self._unscanned:
            yield Absent(f"{self._unscanned >> 20} MB of libc's heap were not searched for pointers into other ranks")
        if heap.unread:
            yield Absent(
                f"{heap.unread} bytes of libc's heap, where ranks allocate, were not read: "
                "it is unreadable, or the words between its blocks contradict one another",
                "if the job allocates at this moment, ask again, or with --freeze" if self._job.target.is_live else "",
            )
        if len(self.words) == MOST_WORDS:
            yield Absent(f"more than {MOST_WORDS} words of libc's heap name an original: the rest are not listed")
