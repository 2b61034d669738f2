"""What would move with each rank, in bytes by category.

Takes a `Job`; counts the rank's image as the registry and the objects' program headers describe it. It reads no memory
but the saved stack pointer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Union

from pieglobalsfind.decoders.ampi.gap_bytes import gap_bytes
from pieglobalsfind.elf.file import PT_GNU_RELRO, ElfFile
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Object, Rank, Rebase, Region, Segment, TlsBlock

from ..job.job import Job
from ..terminal.progress import through

STACK_UNKNOWN = "stack in use unknown"


@dataclass(frozen=True)
class Payload:
    """One rank's bytes. `relro` is what is written only while relocating; of a stack whose pointer is unknown all
    counts as used. `gaps` is what lies between those parts, where a runtime sends a rank's memory as one piece."""

    rank: int
    code: int
    rodata: int
    relro: int
    data: int
    bss: int
    heap_used: int
    heap_free: int
    stack_used: int
    stack_unused: int
    tls: int
    gaps: int
    notes: tuple[str, ...] = ()

    @property
    def is_stack_unknown(self) -> bool:
        """Whether all of the stack counts as used because nothing tells how much is."""
        return any(note.startswith(STACK_UNKNOWN) for note in self.notes)

    @property
    def total(self) -> int:
        """Return the bytes of all categories."""
        return sum(getattr(self, name) for name in CATEGORIES)


CATEGORIES = tuple(field.name for field in fields(Payload) if field.name not in ("rank", "notes"))


@dataclass(frozen=True)
class Sections:
    """What one copy of an object takes."""

    code: int = 0
    rodata: int = 0
    relro: int = 0
    data: int = 0
    bss: int = 0

    def plus(self, other: Sections) -> Sections:
        """Return the sums, section by section."""
        return Sections(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Sections)))


def read_payload(job: Job) -> tuple[Payload, ...]:
    """The payload of every rank whose image is in this process."""
    sections = {elf_object.index: _copy_sections(job, elf_object) for elf_object in job.privatized}
    return tuple(_rank_payload(job, rank, sections) for rank in through(job.present, "memory"))


def _copy_sections(job: Job, elf_object: Object) -> Sections:
    relro = relro_bytes(job, elf_object)
    code = sum(segment.memory_size for segment in elf_object.segments if segment.executable)
    rodata = sum(
        segment.memory_size for segment in elf_object.segments if not segment.executable and not segment.writable
    )
    writable = [segment for segment in elf_object.segments if segment.writable and not segment.executable]
    data = sum(segment.file_size for segment in writable) - relro
    return Sections(code, rodata, relro, data, sum(_zero_bytes(segment) for segment in writable))


def own_sections(job: Job, copy: Rebase, sections: Sections) -> Sections:
    """Without the code and the constants that the copy has from a file: all ranks have the same pages then."""
    elf_object = job.table.objects[copy.object or 0]
    shared = {
        segment.executable
        for segment in elf_object.segments
        if not segment.writable and job.translator.is_of_file(copy.copy + segment.offset)
    }
    return replace(
        sections,
        code=0 if True in shared else sections.code,
        rodata=0 if False in shared else sections.rodata,
    )


def _zero_bytes(segment: Segment) -> int:
    return segment.memory_size - segment.file_size


def relro_bytes(job: Job, elf_object: Object) -> int:
    """Bytes of PT_GNU_RELRO that the file holds; 0 when the file can't be read."""
    path = job.file(elf_object)
    if isinstance(path, Absent):
        return 0
    try:
        with ElfFile(path) as elf:
            return sum(header.file_size for header in elf.program_headers if header.type == PT_GNU_RELRO)
    except RanklensError:
        return 0


def _rank_payload(job: Job, rank: Rank, sections: dict[int, Sections]) -> Payload:
    copies = Sections()
    for rebase in rank.placements:
        if isinstance(rebase, Rebase) and rebase.object is not None:
            copies = copies.plus(own_sections(job, rebase, sections.get(rebase.object, Sections())))
    notes: list[str] = []
    heap_used, heap_free = _heap_bytes(rank, notes)
    stack_used, stack_unused = stack_bytes(job, rank, notes)
    tls = sum(
        placement.size for placement in rank.placements if isinstance(placement, TlsBlock) and placement.level == 0
    )
    return Payload(
        rank.rank,
        copies.code,
        copies.rodata,
        copies.relro,
        copies.data,
        copies.bss,
        heap_used,
        heap_free,
        stack_used,
        stack_unused,
        tls,
        gap_bytes(job.table, rank),
        tuple(notes),
    )


def _heap_bytes(rank: Rank, notes: list[str]) -> tuple[int, int]:
    if isinstance(rank.heap, Absent):
        notes.append(f"heap unknown: {rank.heap.reason}")
        return 0, 0
    if isinstance(rank.heap_used, Absent):
        notes.append(f"all of the heap counts as used: {rank.heap_used.reason}")
        return rank.heap.size, 0
    used = min(rank.heap_used, rank.heap.size)
    return used, rank.heap.size - used


def stack_bytes(job: Job, rank: Rank, notes: list[str]) -> tuple[int, int]:
    """Return a stack's used and unused bytes; what is unknown is added to `notes`."""
    if isinstance(rank.stack, Absent):
        notes.append(f"stack unknown: {rank.stack.reason}")
        return 0, 0
    pointer = stack_pointer(job, rank, rank.stack)
    if isinstance(pointer, Absent):
        notes.append(f"{STACK_UNKNOWN}, all of it counts as used: {pointer.reason}")
        return rank.stack.size, 0
    return rank.stack.end - pointer, pointer - rank.stack.start


def stack_pointer(job: Job, rank: Rank, stack: Region) -> Union[int, Absent]:
    """Where the rank's stack ends now: at its saved registers, or where the kernel thread that runs it stands."""
    if isinstance(rank.context, Absent):
        return _running_stack_pointer(job, rank, stack, rank.context)
    try:
        pointer = job.contexts.registers(rank).get(job.table.processor.stack_pointer)
    except RanklensError as error:
        return Absent(error.sentence)
    if pointer is None or pointer not in stack:
        return Absent("its context names no place in its stack")
    return min(pointer, rank.context) if rank.context in stack else pointer


def _running_stack_pointer(job: Job, rank: Rank, stack: Region, why: Absent) -> Union[int, Absent]:
    for thread in job.threads:
        if thread.tid == rank.kernel_thread and not isinstance(thread.registers, Absent):
            pointer = thread.registers.get(job.table.processor.stack_pointer)
            if pointer is not None and pointer in stack:
                return pointer
    return why
