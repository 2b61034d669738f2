"""The pointer audit: which words of a rank's image were rewritten, which rightly, and which pointers were forgotten.

Takes a `Job`; compares each copy with its original (comparison.py), then looks through what else a rank has of its own
(heap_and_stack_pointers.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pieglobalsfind.model import Absent

from ..job.job import Job
from ..job.rank_data import LARGEST_PIECE
from ..terminal.progress import through
from .comparison import Comparison
from .findings import Alarm, Audit, PointerFinding
from .heap_and_stack_pointers import OwnMemory
from .original_data import Originals


def audit_pointers(job: Job, everything: bool = False) -> Audit:
    """Compare every rank's copies with the originals; right rewrites are only counted unless `everything`."""
    originals = Originals(job)
    own = OwnMemory(originals)
    findings: list[PointerFinding] = []
    alarms: dict[int, list[tuple[int, int, int]]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    changed = 0
    for rank in through(job.present, "pointers"):
        comparison = Comparison(originals, rank)
        for part in originals.parts:
            comparison.compare(part)
        comparison.findings += own.findings(comparison)
        comparison.findings += own.others.findings(comparison)
        counts.update((finding.object, finding.verdict) for finding in comparison.findings)
        findings += [finding for finding in comparison.findings if everything or not finding.healthy]
        changed += comparison.changed
        for index, (stale, total) in comparison.relocated.items():
            if stale:
                alarms.setdefault(index, []).append((rank.rank, stale, total))
    all_alarms = tuple(alarm(job, *item) for item in alarms.items())
    absent = (*what_is_unknown(originals), *own.libc.unknown())
    return Audit(tuple(map(own.libc.checked, findings)), dict(counts), all_alarms, changed, absent, tuple(own.unread))


def what_is_unknown(originals: Originals) -> tuple[Absent, ...]:
    """Why the program's words can't be judged; of libraries only that types are not known."""
    job, evidence = originals.job, originals.evidence
    own = [
        absent for elf_object in job.privatized if elf_object.is_program for absent in evidence[elf_object.index].absent
    ]
    libraries = [
        elf_object for elf_object in job.privatized if not elf_object.is_program and evidence[elf_object.index].absent
    ]
    if libraries:
        names = ", ".join(library.path.rpartition("/")[2] for library in libraries)
        own.append(Absent(f"pointers in {names} are known by relocations alone, for want of debug information"))
    own += not_compared(job)
    if originals.reached.is_cut:
        own.append(Absent("not all blocks of constructors were typed, there are too many"))
    if isinstance(originals.guard, Absent) and originals.guard.hint:
        own.append(originals.guard)
    return tuple(own)


def not_compared(job: Job) -> Iterator[Absent]:
    """Data segments that are larger than what is compared."""
    for elf_object in job.privatized:
        size = sum(
            segment.memory_size
            for segment in elf_object.segments
            if not segment.executable and segment.memory_size > LARGEST_PIECE
        )
        if size:
            name = elf_object.path.rpartition("/")[2]
            yield Absent(f"{size >> 20} MB of data of {name} were not compared: more than {LARGEST_PIECE >> 20} MB")


def alarm(job: Job, index: int, failed: list[tuple[int, int, int]]) -> Alarm:
    """Return an alarm for an object whose privatization failed."""
    worst = max(failed, key=lambda item: item[1])
    ranks = tuple(rank for rank, _, _ in failed)
    return Alarm(job.table.objects[index].path, ranks, len(job.present), worst[1], worst[2])
