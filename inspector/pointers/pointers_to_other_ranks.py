"""Find a rank's pointers that lead into another rank's image, and judge them.

Takes the originals and a rank's comparison with them; reads the rank's variables, whose relocations and types say which
words are pointers, and judges the words that heap_and_stack_pointers.py has found in its heap and on its stack. Such a
function pointer runs another rank's code on its variables; any such pointer dangles once its owner has migrated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Optional, Union

from pieglobalsfind.model import Absent, Owner

from ..job.job import Job
from ..terminal.text import harmless
from .comparison import Comparison
from .findings import ANOTHER_RANKS, STACK, PointerFinding
from .ground import MANGLED, NO_POINTER, Ground
from .original_data import Originals, ScannedPart
from .words import WORD, Word
from .words_into_other_images import OtherImages

UNUSED = ("range", "unmapped")  # kinds of addresses that lead to nothing of a rank's
_word = struct.Struct("<Q").unpack_from


class OtherRanks:
    """Finds such words in the ranks of one job, one after the other."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals
        self._job: Job = originals.job
        self.images = OtherImages(self._job)
        self._places = {
            elf_object.index: sorted(set(originals.evidence[elf_object.index].pointers()))
            for elf_object in self._job.privatized
        }

    def findings(self, comparison: Comparison) -> Iterator[PointerFinding]:
        """Those of the rank that is compared; none where ranks have pages of their own, and addresses mean less."""
        if comparison.rank.pages_of or self.images.is_empty:
            return
        for part in self._originals.parts:
            if part.object is not None:
                yield from self._of_part(comparison, part, part.object.index, part.object.base)

    def _of_part(self, comparison: Comparison, part: ScannedPart, index: int, base: int) -> Iterator[PointerFinding]:
        start = comparison.moved(part.start)
        data = comparison.copy_of(part, start) if start is not None else b""
        if not data or start is None:
            return
        shift = start - part.start
        for place in self._places[index]:
            offset = place - (part.start - base)
            if not 0 <= offset <= len(data) - WORD:
                continue
            old, new = _word(part.data, offset)[0], _word(data, offset)[0]
            if new in (0, old, old + shift):
                continue  # nearly all: as they were made
            if comparison.names_original(new):
                continue  # stale, which the comparison has found
            owner = self._owner(comparison, new)
            if owner is not None and part.object is not None:
                where = part.object.path, part.start + offset - part.object.base, start + offset
                ground = self._originals.ground(part, offset)
                yield self._finding(comparison, where, (old, new), owner, ANOTHER_RANKS, ground)

    def finding(
        self, comparison: Comparison, place: str, start: int, word: Word, ground: Ground
    ) -> Iterator[PointerFinding]:
        """What is to be said of a word of a heap or stack, which begins at `start`.

        Nothing if its type says that it is not a pointer, or if it is on a stack and nothing says what it is: in its
        own frames a runtime that switches between ranks has the addresses of others.
        """
        owner = self._owner(comparison, word.value)
        verdict = ANOTHER_RANKS if ground.is_pointer else ground.kind
        is_reported = ground.is_pointer or (place != STACK and ground.kind not in (NO_POINTER, MANGLED))
        if owner is not None and is_reported:
            where = place, word.address - start, word.address
            yield self._finding(comparison, where, (word.value, word.value), owner, verdict, ground)

    def _owner(self, comparison: Comparison, value: int) -> Optional[Owner]:
        """The other rank's place that an address leads to, if it does."""
        owner = self._job.translator.owner(value)
        is_others = owner.rank not in (None, comparison.rank.rank) and owner.kind not in UNUSED
        return owner if is_others else None

    def _finding(
        self,
        comparison: Comparison,
        place: tuple[str, int, int],
        values: tuple[int, int],
        owner: Owner,
        verdict: str,
        ground: Ground,
    ) -> PointerFinding:
        own = comparison.moved(owner.original) if owner.original and owner.object is not None else None
        right: Union[int, Absent] = own if own is not None else Absent("the rank has nothing in its place")
        return PointerFinding(
            rank=comparison.rank.rank,
            object=place[0],
            offset=place[1],
            address=place[2],
            verdict=verdict,
            ground=replace(ground, source=f"{ground.source}; it leads to {self._named(owner)}"),
            old=values[0],
            new=values[1],
            right=right,
            rewritten=False,
            past_end=False,
        )

    def _named(self, owner: Owner) -> str:
        """`rank 3's code, step+0x4`."""
        symbol = self._job.symbolizer.symbol(owner)
        place = f"+{owner.offset:#x}" if isinstance(symbol, Absent) else f", {symbol.name}+{symbol.offset:#x}"
        return harmless(f"rank {owner.rank}'s {owner.kind}{place}")
