"""`inspector snapshot`: keeps what is needed of a job, for after the job and for other machines.

Takes a process, a core file or a whole job; writes what pieglobalsfind/targets/snapshot.py reads: a file, or a folder
with one for each process of a job, which `jobs/members.py` reads. The target is not changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from pieglobalsfind.decoders import communicators
from pieglobalsfind.decoders.registry import layout
from pieglobalsfind.decoders.saved_context import guard_places
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import DESCRIPTION, JobMember, Members
from pieglobalsfind.model import Absent, Rank, Redirect, Region, TlsBlock
from pieglobalsfind.shell.atomic_file import whole_folder
from pieglobalsfind.targets.write_snapshot import Written, write

from ..analysis.payload import stack_pointer
from ..job import memory_to_find_ranks
from ..job.job import Job, Subject, say_warnings, subject_of
from ..job.rank_data import data_segments
from ..job.read_processes import homes_of, read_each, subject_of_all
from ..job.reading import add_way, read_target, way_of
from ..job.target_option import add_target, job_named
from ..pointers.libc_heap import mappings_of_libc
from ..pointers.malloc_owner import is_libc, ranges_of_ranks
from ..terminal import progress
from ..terminal.console import console
from ..terminal.progress import through
from ..terminal.text import byte_count, harmless

NONE, RANKS, DATA, ALL = "none", "ranks", "data", "all"
HEADERS = 1 << 14  # bytes at the beginning of each loaded file: its headers and notes
BELOW_CONTEXT = 4096  # bytes below a saved stack pointer that belong to the context or the red zone
AROUND = 1024  # bytes before and after a pair of the auxiliary vector that have all others


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Write a file that every command here, and pieglobalsfind, reads instead of the job: registry, "
        "memory map, build-ids, kernel threads' registers, and memory as far as --memory says. Of a whole job, write "
        "a folder with a file for each process, all of one moment."
    )
    parser.epilog = "exit status: 0 done, 2 bad call, unreadable target or unwritable file"
    add_target(parser)
    parser.add_argument(
        "-o",
        dest="file",
        metavar="FILE",
        required=True,
        help="where to; an old file is replaced. Of a whole job, a folder that is not there yet",
    )
    parser.add_argument(
        "--memory",
        choices=(NONE, RANKS, DATA, ALL),
        default=DATA,
        help="none: what describes ranks; ranks: and stacks; data: and globals, heaps, thread-local storage (default); "
        "all: all that can be read",
    )
    add_way(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector snapshot`; returns the exit status."""
    members = job_named(options.job, options.target, options.exe)
    if members is not None:
        with progress.shown():
            subject, written = write_members(members, options)
    else:
        job, written_piece = read_target(
            options.target,
            options.exe,
            way_of(options),
            lambda job: write_process(job, options.memory, options.file),
            with_data=_is_with_data(options),
        )
        say_warnings(job)
        subject, written = subject_of(job), [written_piece]
    show(subject, written, options.file)
    return 0


def _is_with_data(options: argparse.Namespace) -> bool:
    return str(options.memory) != RANKS


def write_process(job: Job, memory: str, file: str) -> tuple[Job, Written]:
    """Write the file of one process."""
    tell = progress.of_bytes("snapshot")
    register_places = list(memory_to_find_ranks.places(job))  # of the pause alone: it leads from word to word
    return job, write(job.bulk.target, [*register_places, *regions(job.bulk, memory)], job.taken, file, tell)


def write_members(members: Members, options: argparse.Namespace) -> tuple[Subject, list[Written]]:
    """A file for each process of a job in a new folder, and what says that these are all."""
    numbers = {member: index for index, member in enumerate(members.found)}
    if all(member.index >= 0 for member in numbers):
        numbers = {member: member.index for member in numbers}
    with whole_folder(Path(options.file), "name another folder by -o") as folder:

        def keep(job: Job, member: JobMember) -> tuple[Job, Written]:
            return write_process(job, options.memory, str(folder / f"process-{numbers[member]}.snapshot"))

        read = read_each(members, way_of(options), keep, with_data=_is_with_data(options))
        (folder / DESCRIPTION).write_text(f"processes {max(members.count, len(numbers))}\nend\n")
    jobs = [job for job, _ in read]
    return subject_of_all(members, jobs, homes_of(jobs)), [written for _, written in read]


def show(subject: Subject, written: Sequence[Written], file: str) -> None:
    """Print what was written."""
    size, memory, zeros = (
        sum(getattr(written_file, name) for written_file in written) for name in ("size", "memory", "zeros")
    )
    untouched = f" ({byte_count(zeros)} more were never touched)" if zeros else ""
    several = f"{len(written)} processes, " if len(written) > 1 else ""
    line = f"{file}: {several}{byte_count(size)}, {byte_count(memory)} of memory{untouched}"
    screen = console()
    screen.print(Text(harmless(f"{line}, {len(subject.table.ranks)} ranks")), soft_wrap=True)
    if several:
        screen.print(Text(subject.how, style="dim"), soft_wrap=True)


def regions(job: Job, memory: str) -> Iterator[tuple[int, int]]:
    """(start, end) of what the snapshot is to hold; parts may overlap."""
    yield from registry(job)
    yield from communicators.places(job.target, job.table)
    yield from headers(job)
    if memory == ALL:
        yield from (
            (mapping.start, mapping.end)
            for mapping in job.target.maps()
            if mapping.readable and mapping.path != "[vvar]"
        )
        return
    for rank in through(job.present if memory != NONE else (), "memory"):
        yield from stack(job, rank)
        if memory == DATA:
            yield from data(job, rank)
    if memory == DATA:
        for elf_object in job.table.objects:
            yield from (
                (elf_object.base + segment.offset, elf_object.base + segment.end)
                for segment in elf_object.segments
                if not segment.executable
            )
        heap = job.table.constructor_heap
        if heap is not None:
            yield heap.start, heap.end
        yield from libc_heap(job)
        yield from guard(job)


def libc_heap(job: Job) -> Iterator[tuple[int, int]]:
    """What ranks allocate where `malloc` is libc's, among what else may be there: a block's rank is unknown."""
    if is_libc(job):
        yield from ((mapping.start, mapping.end) for mapping in mappings_of_libc(job.target, ranges_of_ranks(job)))


def registry(job: Job) -> Iterator[tuple[int, int]]:
    """The header and the records in use: room for more of them takes no memory before it is read."""
    for mapping in job.target.maps():
        if "rank_debug_registry" in mapping.path and mapping.readable:
            try:
                content = job.target.read(mapping.start, layout.HEADER_SIZE)
                _, tables = layout.parse_header(content, job.table.byte_order)
            except RanklensError:
                continue
            yield mapping.start, mapping.start + layout.HEADER_SIZE
            for table in (*tables, layout.parse_events_table(content, job.table.byte_order)):
                end = table.address + table.count * table.stride
                if mapping.start <= table.address <= end <= mapping.end:
                    yield table.address, end


def headers(job: Job) -> Iterator[tuple[int, int]]:
    """Of each loaded file what tells which one it is."""
    for mapping in job.target.maps():
        if mapping.path.startswith("/") and mapping.offset == 0:
            yield mapping.start, min(mapping.start + HEADERS, mapping.end)


def guard(job: Job) -> Iterator[tuple[int, int]]:
    """What the pointers that glibc mangles are found by: pages of the first thread's stack."""
    for place in guard_places(job.target, job.target.maps()) or ():
        yield max(place - AROUND, 0), place + AROUND


def stack(job: Job, rank: Rank) -> Iterator[tuple[int, int]]:
    """What the rank uses of its stack, and its saved context; all of it while the rank runs."""
    if isinstance(rank.stack, Region):
        pointer = stack_pointer(job, rank, rank.stack)
        start = rank.stack.start if isinstance(pointer, Absent) else pointer - BELOW_CONTEXT
        yield max(start, rank.stack.start), rank.stack.end
    if isinstance(rank.context, int):
        yield rank.context, rank.context + BELOW_CONTEXT


def data(job: Job, rank: Rank) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a rank's data."""
    for elf_object in job.privatized:
        yield from ((start, start + segment.memory_size) for segment, start in data_segments(rank, elf_object))
    if isinstance(rank.heap, Region):
        yield rank.heap.start, rank.heap.end
    for placement in rank.placements:
        if isinstance(placement, Redirect):
            yield placement.storage, placement.storage + placement.size
        if isinstance(placement, TlsBlock):
            start = placement.address
            if placement.is_thread_pointer:
                start = job.table.processor.static_tls_start(placement.address, placement.size)
            yield start, start + placement.size
