"""The pointer audit: which words of a copy were rewritten, which rightly, and which pointers were forgotten.

Takes a `Job`; compares each copy with its original word by word. A rewrite is a word of the copy that equals the
original's word moved into the rank's image; a word that has any other value was changed by the program and is no
rewrite. A stale pointer is one that still points into an original.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional, Union

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Object, Rank, Rebase
from pieglobalsfind.target import Target

from .evidence import AMBIGUOUS, NO_POINTER, PROVEN, TYPED, UNTYPED, Ground, ObjectEvidence
from .job import Job
from .memory import LARGEST_PIECE
from .progress import through
from .words import WORD, Ranges, candidates, changed_words, is_past_end

FALSE_POSITIVE = "false positive"
STALE = "stale"
VERDICTS = (PROVEN, TYPED, AMBIGUOUS, FALSE_POSITIVE, STALE, UNTYPED)
HEAP = "heap"
EXACT = "exact"  # the rewrite mode that goes by relocations alone


@dataclass(frozen=True)
class Finding:
    """One word of one rank's image that was rewritten, or that points into an original.

    `object` is the path of the copied object or "heap", `offset` from its base (of the heap: from the constructor
    heap's start); `old` is the original's word, `new` the copy's, `right` what it should be (Absent: nobody can tell).
    """

    rank: int
    object: str
    offset: int
    address: int
    verdict: str
    ground: Ground
    old: int
    new: int
    right: Union[int, Absent]
    rewritten: bool
    past_end: bool

    @property
    def healthy(self) -> bool:
        """A pointer by good evidence, and rewritten."""
        return self.rewritten and self.verdict in (PROVEN, TYPED)


@dataclass(frozen=True)
class Alarm:
    """The privatization of an object failed: words that its code reaches everything through name the original."""

    object: str
    ranks: tuple[int, ...]
    of_ranks: int
    words: int
    of_words: int

    @property
    def sentence(self) -> str:
        return (
            f"privatization of {self.object} failed in {len(self.ranks)} of {self.of_ranks} ranks: "
            f"{self.words} of {self.of_words} relocated words still name the original"
        )


@dataclass(frozen=True)
class Audit:
    """Findings in order of rank and address, and how many words got which verdict, by object and verdict.

    `changed` counts words that the program has changed since the copy was made: there is nothing to say about them.
    """

    findings: tuple[Finding, ...]
    counts: dict[tuple[str, str], int]
    alarms: tuple[Alarm, ...]
    changed: int
    absent: tuple[Absent, ...] = field(default=())


@dataclass(frozen=True)
class Home:
    """A range that was copied for a rank: [start, end] moves by `shift`. The end counts: one past the end."""

    start: int
    end: int
    shift: int

    def moved(self, value: int) -> Optional[int]:
        return value + self.shift if self.start <= value <= self.end else None


@dataclass(frozen=True)
class Part:
    """A piece of an original that the runtime copies and looks through: a data segment or a constructor heap block."""

    object: Optional[Object]
    start: int
    data: bytes
    candidates: tuple[tuple[int, int], ...]  # (offset in data, value): words that name an original place


def audit_pointers(job: Job, everything: bool = False) -> Audit:
    """Compare every rank's copies with the originals; right rewrites are only counted unless `everything`."""
    evidence = {
        one.index: ObjectEvidence(one, job.file(one), job.declared(one)) for one in job.privatized
    }  # fmt: skip
    originals = original_ranges(job)
    parts = list(read_parts(job, originals, evidence))
    find_objects_in_bytes(job, parts, evidence)
    findings: list[Finding] = []
    alarms: dict[int, list[tuple[int, int, int]]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    changed = 0
    for rank in through(job.present, "pointers"):
        comparison = Comparison(job, rank, evidence, originals)
        for part in parts:
            comparison.compare(part)
        counts.update((one.object, one.verdict) for one in comparison.findings)
        findings += [one for one in comparison.findings if everything or not one.healthy]
        changed += comparison.changed
        for index, (stale, total) in comparison.relocated.items():
            if stale:
                alarms.setdefault(index, []).append((rank.rank, stale, total))
    absent = what_is_unknown(job, evidence)
    return Audit(tuple(findings), dict(counts), tuple(alarm(job, *one) for one in alarms.items()), changed, absent)


def what_is_unknown(job: Job, evidence: dict[int, ObjectEvidence]) -> tuple[Absent, ...]:
    """Why the program's words can't be judged; of libraries only that types are not known."""
    own = [one for found in job.privatized if found.is_program for one in evidence[found.index].absent]
    libraries = [found for found in job.privatized if not found.is_program and evidence[found.index].absent]
    if libraries:
        names = ", ".join(one.path.rpartition("/")[2] for one in libraries)
        own.append(Absent(f"pointers in {names} are known by relocations alone, for want of debug information"))
    return tuple(own)


def find_objects_in_bytes(job: Job, parts: list[Part], evidence: dict[int, ObjectEvidence]) -> None:
    """C++ builds objects in arrays of char (placement new): a virtual table's address there gives them away."""
    for part in parts:
        for offset, value in part.candidates:
            if part.object is None:
                continue
            place = part.start + offset - part.object.base
            if evidence[part.object.index].ground(place).kind == NO_POINTER and is_virtual_table(job, value):
                evidence[part.object.index].holds_object(place)


def is_virtual_table(job: Job, value: int) -> bool:
    """Whether an object's first word may have this value (Itanium C++ ABI, 2.5.2): a `_ZTV` symbol and a few words."""
    symbol = job.symbolizer.symbol(job.translator.owner(value))
    return not isinstance(symbol, Absent) and symbol.linkage_name.startswith("_ZTV") and symbol.offset >= 2 * WORD


def alarm(job: Job, index: int, failed: list[tuple[int, int, int]]) -> Alarm:
    worst = max(failed, key=lambda one: one[1])
    ranks = tuple(rank for rank, _, _ in failed)
    return Alarm(job.table.objects[index].path, ranks, len(job.present), worst[1], worst[2])


def original_ranges(job: Job) -> Ranges:
    """[start, end] of what was copied: the privatized objects and the constructors' heap blocks."""
    ranges = [(one.base, one.end) for one in job.privatized]
    return ranges + [(address, address + size) for address, size in job.table.constructor_blocks]


def read_parts(
    job: Job, originals: Ranges, evidence: dict[int, ObjectEvidence]
) -> Iterator[Part]:  # fmt: skip
    """The originals' data segments and heap blocks with their candidates."""
    for found in job.privatized:
        pointers = sorted(set(evidence[found.index].pointers()))
        for segment in found.segments:
            if not segment.executable:
                start = found.base + segment.offset
                data = read_or_nothing(job.target, start, segment.memory_size)
                inside = [one - segment.offset for one in pointers if segment.offset <= one <= segment.end - WORD]
                yield Part(found, start, data, tuple(candidates(data, start, originals, inside)))
    for address, size in job.table.constructor_blocks:
        data = read_or_nothing(job.target, address, size)
        yield Part(None, address, data, tuple(candidates(data, address, originals, [])))


def read_or_nothing(target: Target, start: int, size: int) -> bytes:
    try:
        return target.read(start, size) if size <= LARGEST_PIECE else b""
    except MemoryUnreadable:
        return b""


def has_copy(rank: Rank, found: Object) -> bool:
    """Libraries have none under `fs`, for instance."""
    return any(isinstance(one, Rebase) and one.object == found.index for one in rank.placements)


class Comparison:
    """One rank against the originals."""

    def __init__(self, job: Job, rank: Rank, evidence: dict[int, ObjectEvidence], originals: Ranges) -> None:
        self._target = job.target
        self._rank = rank
        self._evidence = evidence
        self._shared = [(one.base, one.end) for one in job.privatized if not has_copy(rank, one)]
        self._originals = [one for one in originals if one not in self._shared] if self._shared else originals
        self._heap = job.table.constructor_heap
        self._guesses = job.table.rewrite_mode != EXACT
        self._homes = [
            Home(one.original, one.original + one.size, one.copy - one.original)
            for one in rank.placements
            if isinstance(one, Rebase)
        ]
        self.findings: list[Finding] = []
        self.changed = 0
        self.relocated: dict[int, tuple[int, int]] = {}

    def compare(self, part: Part) -> None:
        """Judge every candidate of a part, and what else in the copy points into an original."""
        start = self._copy_of(part)
        if start is None or start == part.start or not part.data:  # a loader's first copy is all the original there is
            return
        data = read_or_nothing(self._target, start, len(part.data))
        if not data:
            return
        known = set()
        for offset, old in part.candidates:
            known.add(offset)
            new = struct.unpack_from("<Q", data, offset)[0]
            self._judge(part, start, offset, old, new)
        for offset, new in changed_words(part.data, data, self._originals):
            if offset not in known:
                old = struct.unpack_from("<Q", part.data, offset)[0]
                self._judge_later(part, start, offset, old, new)

    def _copy_of(self, part: Part) -> Optional[int]:
        for one in self._rank.placements:
            if isinstance(one, Rebase) and one.original <= part.start < one.original + one.size:
                return one.copy + part.start - one.original
        return None

    def _moved(self, value: int) -> Optional[int]:
        """Where the rank's image has what the originals have at `value`; one past an end belongs to it."""
        inside = [one for one in self._homes if one.start <= value < one.end]
        home = next(iter(inside or [one for one in self._homes if value == one.end]), None)
        return home.moved(value) if home is not None else None

    def _ground(self, part: Part, offset: int) -> Ground:
        if part.object is None:
            return Ground(UNTYPED, "a block that a constructor allocated", "")
        return self._evidence[part.object.index].ground(part.start + offset - part.object.base)

    def _judge(self, part: Part, start: int, offset: int, old: int, new: int) -> None:
        """A word that named an original place when the copy was made."""
        if any(low <= old < high for low, high in self._shared):
            return  # of an object that all ranks use as it is
        ground, moved = self._ground(part, offset), self._moved(old)
        rewritten = moved is not None and new == moved
        self._count_relocated(part, start + offset, ground, new == old)
        if not rewritten and new != old:
            self.changed += 1
            if any(low <= new <= high for low, high in self._originals):
                self._judge_later(part, start, offset, old, new)
            return
        verdict = verdict_of(ground, rewritten)
        if rewritten and not self._guesses and ground.kind != PROVEN:
            return  # nobody rewrote it: constructors ran again, in the copy, and computed it anew
        if verdict is not None:
            right = right_value(ground, old, moved)
            self._add(part, start, offset, verdict, ground, (old, new), right, rewritten)

    def _count_relocated(self, part: Part, address: int, ground: Ground, stale: bool) -> None:
        if part.object is not None and ground.kind == PROVEN and address % WORD == 0:
            failed, total = self.relocated.get(part.object.index, (0, 0))
            self.relocated[part.object.index] = (failed + stale, total + 1)

    def _judge_later(self, part: Part, start: int, offset: int, old: int, new: int) -> None:
        """A word that came to point into an original after the copy was made."""
        ground = self._ground(part, offset)
        if ground.is_pointer:
            self._add(part, start, offset, STALE, ground, (old, new), self._moved(new) or Absent("unknown"), False)

    def _add(
        self,
        part: Part,
        start: int,
        offset: int,
        verdict: str,
        ground: Ground,
        values: tuple[int, int],
        right: Union[int, Absent],
        rewritten: bool,
    ) -> None:
        base = part.object.base if part.object is not None else (self._heap.start if self._heap else part.start)
        old, new = values
        pointed = old if rewritten else new
        self.findings.append(
            Finding(
                rank=self._rank.rank,
                object=part.object.path if part.object is not None else HEAP,
                offset=part.start + offset - base,
                address=start + offset,
                verdict=verdict,
                ground=ground,
                old=old,
                new=new,
                right=right,
                rewritten=rewritten,
                past_end=is_past_end(pointed, self._originals),
            )
        )


def verdict_of(ground: Ground, rewritten: bool) -> Optional[str]:
    """What to say of a word that named an original place; None when it was rightly left alone."""
    if rewritten:
        return FALSE_POSITIVE if ground.kind == NO_POINTER else ground.kind
    if ground.is_pointer:
        return STALE
    return None if ground.kind == NO_POINTER else ground.kind


def right_value(ground: Ground, old: int, moved: Optional[int]) -> Union[int, Absent]:
    """What the copy's word should have been."""
    if ground.is_pointer:
        return moved if moved is not None else Absent("the rank has no copy of what it points to")
    if ground.kind == NO_POINTER:
        return old
    return Absent("nothing says whether it is a pointer")
