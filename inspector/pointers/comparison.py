"""One rank's copies held against the originals, word by word.

Takes a rank and the originals; reads the copies. A rewrite is a word of the copy that equals the original's word moved
into the rank's image; a word that has any other value was changed by the program and is not a rewrite. A stale pointer
still points into an original.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.model import Absent, Rank, Rebase, Redirect
from pieglobalsfind.ranges import merged
from pieglobalsfind.ranks.variable_address import has_copy

from .findings import HEAP, PointerFinding, right_value, verdict_of
from .ground import MANGLED, PROVEN, Ground
from .original_data import Originals, ScannedPart, held_in, read_or_nothing
from .words import BLOCK, WORD, Ranges, changed_pieces, is_past_end, words_in

EXACT = "exact"  # the rewrite mode that goes by relocations alone
BY_VALUE = "by value: without glibc's mangling it leads to the original's code"


@dataclass(frozen=True)
class CopiedRange:
    """A range that was copied for a rank: [start, end] moves by `shift`. The end counts: one past the end."""

    start: int
    end: int
    shift: int

    def moved(self, value: int) -> Optional[int]:
        """Return an address in the copy for one in the original, or None."""
        return value + self.shift if self.start <= value <= self.end else None


class Comparison:
    """One rank against the originals."""

    def __init__(self, originals: Originals, rank: Rank) -> None:
        job = originals.job
        self._originals = originals
        self._target = job.target
        self._translator = job.translator
        self.rank = rank
        self._shared = [
            (elf_object.base, elf_object.end) for elf_object in job.privatized if not has_copy(rank, elf_object)
        ]
        every = originals.ranges
        self.ranges: Ranges = [span for span in every if span not in self._shared] if self._shared else every
        self._heap = job.table.constructor_heap
        self._is_exact = job.table.rewrite_mode == EXACT
        self._homes = [
            CopiedRange(placement.original, placement.original + placement.size, placement.copy - placement.original)
            for placement in rank.placements
            if isinstance(placement, Rebase)
        ]
        # A byte copy that names the original's variable is what this looks for, though ranks use that one (ampi.md).
        is_byte_copy = job.table.method == "pie"
        self._redirected = [
            (placement.storage, placement.storage + placement.size)
            for placement in rank.placements
            if isinstance(placement, Redirect) and not (is_byte_copy and placement.storage == placement.original)
        ]
        self.findings: list[PointerFinding] = []
        self.in_blocks: set[int] = set()  # addresses of words in constructors' blocks that were judged
        self._copies: dict[int, bytes] = {}  # by address
        self.changed = 0
        self.relocated: dict[int, tuple[int, int]] = {}

    def compare(self, part: ScannedPart) -> None:
        """Judge every candidate of a part, and what else in the copy points into an original."""
        start = self.moved(part.start) if part.data else None
        if start is None or start == part.start:  # a loader's first copy is all the original there is
            return
        data = self.copy_of(part, start)
        if not data:
            return
        unchanged = {offset for offset, old in part.candidates if self._judge(part, start, offset, old, data)}
        unchanged |= {offset for offset, place in part.mangled if self._judge_mangled(part, start, offset, place, data)}
        if part.object is not None:  # what a rank does with its heap is reported of its heap
            self._judge_changed(part, start, data, unchanged)

    def copy_of(self, part: ScannedPart, start: int) -> bytes:
        """The rank's copy of a part, which begins at `start`, read once; none if it can't be read."""
        if start not in self._copies:
            self._copies[start] = read_or_nothing(self._target, start, len(part.data))
        return self._copies[start]

    def moved(self, value: int) -> Optional[int]:
        """Where the rank's image has what the originals have at `value`; one past an end belongs to it."""
        inside = [home for home in self._homes if home.start <= value < home.end]
        home = next(iter(inside or [home for home in self._homes if value == home.end]), None)
        return home.moved(value) if home is not None else None

    def names_original(self, value: int) -> bool:
        """Whether a value lies in an original of which the rank has a copy."""
        return any(low <= value <= high for low, high in self.ranges)

    def is_redirected(self, value: int) -> bool:
        """Whether a value lies in a variable that the rank has apart from its copy: it may be the original's."""
        return any(start <= value < end for start, end in self._redirected)

    def _guesses(self, start: int) -> bool:
        """Whether who made the copy of a part looked for pointers; a loader knows them, and maps the file."""
        mapping = self._translator.mapping(start)
        return not self._is_exact and (mapping is None or not mapping.path.startswith("/"))

    # ---- words that were there when the copy was made ----

    def _judge(self, part: ScannedPart, start: int, offset: int, old: int, data: bytes) -> bool:
        """A word that named an original place when the copy was made; False if it was changed since."""
        if any(low <= old < high for low, high in self._shared):
            return True  # of an object that all ranks use as it is
        new, ground, moved = word(data, offset), self._originals.ground(part, offset), self.moved(old)
        if self.is_redirected(new):
            return True  # a variable of several ranks is meant
        rewritten = moved is not None and new == moved
        self._count_relocated(part, start + offset, ground, new == old)
        if not rewritten and new != old:
            self.changed += 1
            return False
        if part.object is None:
            self.in_blocks.add(start + offset)
        verdict = verdict_of(ground, rewritten)
        if rewritten and ground.kind != PROVEN and not self._guesses(start):
            return True  # not rewritten: constructors ran again, in the copy, and computed it again
        if verdict is not None:
            right = right_value(ground, old, moved)
            self._add(part, start, offset, verdict, ground, (old, new), right, rewritten)
        return True

    def _count_relocated(self, part: ScannedPart, address: int, ground: Ground, stale: bool) -> None:
        if part.object is not None and ground.kind == PROVEN and address % WORD == 0:
            failed, total = self.relocated.get(part.object.index, (0, 0))
            self.relocated[part.object.index] = (failed + stale, total + 1)

    def _judge_mangled(self, part: ScannedPart, start: int, offset: int, place: int, data: bytes) -> bool:
        """A word that led to an original's code, mangled, when the copy was made; False if it was changed since."""
        old, new = word(part.data, offset), word(data, offset)
        if new != old:
            self.changed += 1
        elif self.names_original(place):
            if part.object is None:
                self.in_blocks.add(start + offset)
            self._add_mangled(part, start, offset, place, (old, new))
        return new == old

    # ---- words that came later ----

    def _judge_changed(self, part: ScannedPart, start: int, data: bytes, unchanged: set[int]) -> None:
        parts = merged((*part.held, *held_in(self._target, start, len(data))))
        for first, piece in changed_pieces(part.data, data, parts):
            for at, new in words_in(piece, self.ranges):
                if at < BLOCK and first + at not in unchanged:
                    self._judge_later(part, start, first + at, new)
            for at, place in self._originals.demangled(piece, start + first):
                if at < BLOCK and first + at not in unchanged and self.names_original(place):
                    values = word(part.data, first + at), word(data, first + at)
                    self._add_mangled(part, start, first + at, place, values)

    def _judge_later(self, part: ScannedPart, start: int, offset: int, new: int) -> None:
        """A word that came to point into an original after the copy was made."""
        ground, old = self._originals.ground(part, offset), word(part.data, offset)
        verdict = verdict_of(ground, False)
        is_new = (start + offset) % WORD == 0 and new != old
        if verdict is not None and not self.is_redirected(new) and (ground.is_pointer or is_new):
            right = right_value(ground, new, self.moved(new))
            self._add(part, start, offset, verdict, ground, (old, new), right, False)

    # ---- findings ----

    def _add_mangled(self, part: ScannedPart, start: int, offset: int, place: int, values: tuple[int, int]) -> None:
        ground = mangled_ground(self._originals.ground(part, offset))
        right = self.mangled_right(place)
        self._add(part, start, offset, MANGLED, ground, values, right, False, place)

    def mangled_right(self, place: int) -> Union[int, Absent]:
        """What a mangled word that means a place of the originals should be."""
        moved, guard = self.moved(place), self._originals.guard
        if moved is None or isinstance(guard, Absent):
            return Absent("the rank has no copy of what it leads to")
        return self._originals.processor.mangle(moved, guard)

    def _add(
        self,
        part: ScannedPart,
        start: int,
        offset: int,
        verdict: str,
        ground: Ground,
        values: tuple[int, int],
        right: Union[int, Absent],
        rewritten: bool,
        demangled: Optional[int] = None,
    ) -> None:
        base = part.object.base if part.object is not None else (self._heap.start if self._heap else part.start)
        old, new = values
        self.findings.append(
            PointerFinding(
                rank=self.rank.rank,
                object=part.object.path if part.object is not None else HEAP,
                offset=part.start + offset - base,
                address=start + offset,
                verdict=verdict,
                ground=ground,
                old=old,
                new=new,
                right=right,
                rewritten=rewritten,
                past_end=is_past_end(old if rewritten else new, self.ranges),
                demangled=demangled,
            )
        )


def word(data: bytes, offset: int) -> int:
    """The word at an offset."""
    return int(struct.unpack_from("<Q", data, offset)[0])


def mangled_ground(ground: Ground) -> Ground:
    """Of a word that leads to an original's code once it is demangled: by its type, or by its value alone."""
    return ground if ground.kind == MANGLED else Ground(MANGLED, BY_VALUE, ground.symbol, ground.type)
