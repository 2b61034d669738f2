"""What a rank has besides its copies: blocks of its heap, looked through for pointers into the originals.

Takes the originals and a rank's comparison. A word is called a pointer only if types say so; of any other that names
an original place it is said that nothing describes it. What was not looked through is said, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Optional, Union

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Rebase, Redirect, Region

from .comparison import Comparison, mangled_ground
from .evidence import MANGLED, UNTYPED, Ground
from .findings import HEAP, Finding, right_value, verdict_of
from .heap_blocks import Blocks, blocks_in
from .memory import LARGEST_PIECE, RankMemory
from .originals import Originals
from .reach import Block, Reached, Typed
from .words import WORD, Ranges, is_past_end, words_in

PIECE = 4 << 20  # bytes that are looked through at once
MOST_WORDS = 100_000  # of one rank's heap


class Word(NamedTuple):
    """A word that names an original place; `demangled` if it does so without glibc's mangling alone."""

    address: int
    value: int
    demangled: Optional[int] = None


class OwnMemory:
    """The heaps of all ranks, one after the other; `unread` says of whom what was not looked through, and why."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals
        self._job = originals.job
        self._memory = RankMemory(self._job.target)
        self._foreign = foreign(originals)
        self.unread: list[tuple[int, str]] = []

    def findings(self, found: Comparison) -> list[Finding]:
        """What the rank's heap has."""
        ranges = [one for one in found.ranges if one in self._foreign]
        if not ranges:
            return []
        heap = found.rank.heap
        words = self._words_of_heap(found, heap, ranges) if isinstance(heap, Region) else []
        if not words:
            return []
        assert isinstance(heap, Region)
        return self._judged(found, heap, words)

    # ---- the words ----

    def _words_of_heap(self, found: Comparison, heap: Region, ranges: Ranges) -> list[Word]:
        words: list[Word] = []
        for start in range(heap.start, heap.end, PIECE):
            try:
                data = self._job.target.read(start, min(PIECE + WORD - 1, heap.end - start))
            except MemoryUnreadable as error:
                self.unread.append((found.rank.rank, f"its heap can't be read to its end, {error.why}"))
                break
            words += (one for one in self._words(found, data, start, ranges) if one.address < start + PIECE)
            if len(words) > MOST_WORDS:
                self.unread.append((found.rank.rank, f"more than {MOST_WORDS} words of its heap name an original"))
                break
        return words

    def _words(self, found: Comparison, data: bytes, start: int, ranges: Ranges) -> Iterator[Word]:
        redirected = [one for one in found.rank.placements if isinstance(one, Redirect)]
        for offset, value in words_in(data, ranges):
            mine = any(one.storage <= value < one.storage + one.size for one in redirected)
            if start + offset not in found.in_blocks and not mine:
                yield Word(start + offset, value)
        for offset, place in self._originals.demangled(data, start):
            if start + offset not in found.in_blocks and any(low <= place <= high for low, high in ranges):
                yield Word(start + offset, int.from_bytes(data[offset : offset + WORD], "little"), place)

    # ---- what they are ----

    def _judged(self, found: Comparison, heap: Region, words: list[Word]) -> list[Finding]:
        blocks = self._blocks(heap)
        whole = Block(heap.start, heap.size, False)

        def block_at(address: int) -> Optional[Block]:
            return blocks.at(address) if blocks is not None else whole if address in heap else None

        kept = [one for one in words if is_whole_in(block_at(one.address), one.address)]
        if not kept:
            return []
        self._memory.load(found.rank, self._job.privatized)
        reached = Reached(self._originals.pointers, self._memory.read, block_at, self._originals.is_address)
        reached.follow(self._roots(found))
        if reached.is_cut:
            self.unread.append((found.rank.rank, "not all of its heap's blocks were told by types, there are too many"))
        return [one for word in kept for one in finding(found, HEAP, heap.start, word, reached.ground(word.address))]

    def _roots(self, found: Comparison) -> Iterator[Typed]:
        """The rank's own variables that hold pointers."""
        for one in self._originals.roots():
            address = found.moved(one.address)
            if address is not None:
                yield replace(one, address=address)

    def _blocks(self, heap: Region) -> Optional[Blocks]:
        if heap.size > LARGEST_PIECE:
            return None
        try:
            return blocks_in(self._job.target.read(heap.start, heap.size), heap.start)
        except MemoryUnreadable:
            return None


def finding(found: Comparison, place: str, start: int, word: Word, ground: Optional[Ground]) -> Iterator[Finding]:
    """What is to be said of a word of the rank's own, if anything."""
    ground = ground or Ground(UNTYPED, "it points into the original, and nothing says what it is")
    right: Union[int, Absent]
    if word.demangled is not None:
        verdict: Optional[str] = MANGLED
        ground, right = mangled_ground(ground), found.mangled_right(word.demangled)
    else:
        verdict, right = verdict_of(ground, False), right_value(ground, word.value, found.moved(word.value))
    if verdict is not None:
        yield Finding(
            rank=found.rank.rank,
            object=place,
            offset=word.address - start,
            address=word.address,
            verdict=verdict,
            ground=ground,
            old=word.value,
            new=word.value,
            right=right,
            rewritten=False,
            past_end=is_past_end(word.value, found.ranges),
            demangled=word.demangled,
        )


def is_whole_in(block: Optional[Block], address: int) -> bool:
    """Whether the word at an address is all in one block."""
    return block is not None and address + WORD <= block.end


def foreign(originals: Originals) -> Ranges:
    """The originals that are no rank's own copy: what a loader has loaded is the first rank's."""
    owned = {
        (one.original, one.original + one.size)
        for rank in originals.job.present
        for one in rank.placements
        if isinstance(one, Rebase) and one.copy == one.original
    }
    return [
        (low, high) for low, high in originals.ranges if not any(start <= low < end for start, end in owned)
    ]  # fmt: skip
