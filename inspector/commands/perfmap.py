"""`inspector perfmap`: lets Linux perf name functions in ranks' copies, which it takes for code made at run time.

Takes a running process; writes /tmp/perf-PID.map as perf reads it (jit-interface.txt of Linux' perf): a line
`START SIZE NAME`, numbers in hexadecimal, per function and copy. It touches nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.symbol_table import read_symbols
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Absent, Object, Rebase
from pieglobalsfind.shell.atomic_file import write_whole
from pieglobalsfind.shell.exit_status import print_error

from ..job.job import Job
from ..job.reading import Way, read_target
from ..terminal.text import harmless


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Write /tmp/perf-PID.map, by which `perf report` and everything that reads such maps names "
        "functions in ranks' copies: `solve [rank 3]`."
    )
    parser.epilog = "exit status: 0 done, 1 no copies found, 2 bad call or unreadable target"
    parser.add_argument("target", metavar="PID", help="a running process")
    parser.add_argument("--merge", action="store_true", help="without the rank, so that samples of all ranks add up")
    parser.add_argument("-o", metavar="FILE", dest="output", help="another file than /tmp/perf-PID.map")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector perfmap`; returns the exit status."""
    if not options.target.isdecimal():
        raise UsageError(f"{options.target!r} is not a process", "give a running job's PID: perf profiles processes")
    merge = options.merge
    job, lines = read_target(
        options.target, None, Way(nonblocking=True), lambda job: (job, sorted(entries(job, merge)))
    )
    for reason in lacking(job):
        print_error("inspector", reason)
    if not lines:
        return 1
    place = Path(options.output or f"/tmp/perf-{job.table.process_id or int(options.target)}.map")
    write_whole(
        place, "".join(f"{start:x} {size:x} {name}\n" for start, size, name in lines), "name another file by -o"
    )
    print(f"{place}: {len(lines)} functions")
    return 0


def entries(job: Job, merge: bool) -> Iterator[tuple[int, int, str]]:
    """Start, size and name of every function in every copy."""
    for elf_object in job.privatized:
        functions = list(functions_of(job, elf_object))
        for rank in job.present:
            for placement in rank.placements:
                if isinstance(placement, Rebase) and placement.object == elf_object.index:
                    shift = elf_object.load_bias + placement.copy - placement.original
                    label = "" if merge else f" [rank {rank.rank}]"
                    yield from ((vaddr + shift, size, name + label) for vaddr, size, name in functions)


def lacking(job: Job) -> Iterator[str]:
    """Why functions of copies have no names in the map."""
    copied = {
        placement.object for rank in job.present for placement in rank.placements if isinstance(placement, Rebase)
    }
    if not copied:
        yield f"there is nothing to map: ranks of method {job.table.method or 'unknown'} have no copies of code"
    for elf_object in job.privatized:
        path = job.file(elf_object)
        if elf_object.index in copied and isinstance(path, Absent):
            yield f"the map lacks functions, {path.reason}" + (f": {path.hint}" if path.hint else "")


def functions_of(job: Job, elf_object: Object) -> Iterator[tuple[int, int, str]]:
    """p_vaddr, size and name of an object's functions; none where its file is gone."""
    path = job.file(elf_object)
    if isinstance(path, Absent):
        return
    with ElfFile(path) as elf:
        symbols = read_symbols(elf)
    executable = [
        (segment.offset, segment.offset + segment.memory_size)
        for segment in elf_object.segments
        if segment.protection & 1
    ]
    low = elf_object.base - elf_object.load_bias
    for symbol in symbols.addresses:
        inside = any(start <= symbol.start - low < end for start, end in executable)
        if inside and symbol.size:
            yield symbol.start, symbol.size, harmless(demangle(symbol.name)).replace("\n", " ")
