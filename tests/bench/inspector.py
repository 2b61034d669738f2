"""The inspector on a thousand ranks and on large images, its reading against one bare pass, and its index of DWARF.

Compiles tests/bench/programs/miniature.c, and a generated program with ten megabytes of debug information.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from elftools.elf.elffile import ELFFile

from inspector.job.job import Job, open_job
from inspector.job.rank_data import RankData, data_segments
from pieglobalsfind.dwarf.types import Variables
from pieglobalsfind.model import Rebase
from tests.bench.gdb_ranks import bytecode, job, rankrun
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

SOURCE = Path(__file__).resolve().parent / "programs" / "miniature.c"
RANKS, LARGE_RANKS, LARGE = 1_000, 64, 16 << 20
UNITS, DEBUG_BYTES = 20, 10_000_000
TURNS = 3
TIMEOUT = 300


class Vector(ctypes.Structure):
    """struct iovec of process_vm_readv(2)."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def run() -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")  # nobody's own is read or filled
        small, large, debug = folder / "small", folder / "large", folder / "debug"
        compiled(SOURCE, small)
        compiled(SOURCE, large, f"-DSIZE={LARGE}")
        size = with_debug_information(folder, debug)
        with job([*rankrun(RANKS), str(small)]) as pid:
            many, _ = report(pid)
        with job([*rankrun(LARGE_RANKS), str(large)]) as pid:
            images, memory = report(pid)
            ours, bare, read = reading(pid)
        with job([*rankrun(2), str(debug)]) as pid:
            cold = best(lambda: index(pid, folder))
            warm = best(lambda: first_answer(pid))
            variables = count(pid)
    return Result(
        "The inspector",
        f"`inspector report` on {RANKS:,} ranks, and on {LARGE_RANKS} ranks of {LARGE >> 20} MB; reading every rank's "
        f"data ({read / 1e6:,.0f} MB) against one pass of process_vm_readv into one buffer; {size / 1e6:.1f} MB of "
        f".debug_info, read for the first time (names, places, sizes and lines of {variables:,} variables; a type is "
        f"read when it is looked at) and from the index. Processor time, of user and kernel, which "
        f"other users of the machine don't lengthen; the best of {TURNS}.",
        (
            Measurement(f"report on {RANKS:,} ranks", many, "s", 3.0),
            Measurement(f"report on {LARGE_RANKS} ranks of {LARGE >> 20} MB", images, "s", 3.0),
            Measurement("the same, peak memory", memory / 1e6, "MB", (2 * LARGE + 100e6) / 1e6),
            Measurement("one bare pass over all data", bare, "s"),
            Measurement("reading all data, relative to that", ours / bare, "x", 2.0),
            Measurement("variables by DWARF, cold", cold, "s"),
            Measurement("first answer of a new process, warm", warm, "s", 0.2),
        ),
    )


def compiled(source: Path, program: Path, *options: str) -> None:
    command = [str(BIN / "rankcc"), "-g", "-O1", *options, str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=TIMEOUT)


def best(once: Callable[[], float]) -> float:
    return min(once() for _ in range(TURNS))


def report(pid: int) -> tuple[float, int]:
    """Seconds of processor time of the best report, bytes of the largest."""
    costs = [measured([str(BIN / "inspector"), "report", str(pid)]) for _ in range(TURNS)]
    return min(seconds for seconds, _ in costs), max(memory for _, memory in costs)


def measured(command: list[str]) -> tuple[float, int]:
    """Seconds of processor time, of user and kernel, and the peak of memory in bytes."""
    # As for a user: from the second time on Python has the program's bytecode, which it writes unless forbidden to.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode()
    done = subprocess.run(
        ["/usr/bin/time", "-f", "spent %U %S %M", *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
        env=environment,
    )
    match = re.search(r"^spent (\S+) (\S+) (\d+)$", done.stderr, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"{command} said no cost: {done.stderr[-500:]}")
    return float(match[1]) + float(match[2]), 1024 * int(match[3])


# ---- reading ----


def reading(pid: int) -> tuple[float, float, int]:
    """Seconds of our pass and of the bare one over the same bytes, and how many these are; passes take turns."""
    found = open_job(str(pid), None)
    places = [
        (start, segment.memory_size)
        for rank in found.present
        for elf_object in found.privatized
        for segment, start in data_segments(rank, elf_object)
    ]
    ours, bare = [], []
    for _ in range(TURNS):
        bare.append(bare_pass(pid, places))
        ours.append(our_pass(found))
    return min(ours), min(bare), sum(size for _, size in places)


def our_pass(found: Job) -> float:
    start = time.process_time()
    memory = RankData(found.target)
    for rank in found.present:
        memory.load(rank, found.privatized)
    return time.process_time() - start


def bare_pass(pid: int, places: list[tuple[int, int]]) -> float:
    """Every place once, into one buffer that is there already."""
    read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    read.restype = ctypes.c_ssize_t
    read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    buffer = ctypes.create_string_buffer(max(size for _, size in places))
    start = time.process_time()
    for address, size in places:
        here, there = Vector(ctypes.addressof(buffer), size), Vector(address, size)
        if read(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != size:
            raise OSError(ctypes.get_errno(), "process_vm_readv")
    return time.process_time() - start


# ---- DWARF ----


def with_debug_information(folder: Path, program: Path) -> int:
    """A program of so much debug information; returns the size of its .debug_info."""
    records = 100
    while True:
        sources = [folder / f"unit{number}.c" for number in range(UNITS)]
        for number, source in enumerate(sources):
            source.write_text(unit_source(number, records))
        command = [str(BIN / "rankcc"), "-g", "-O0", *map(str, sources), "-o", str(program)]
        subprocess.run(command, check=True, timeout=TIMEOUT)
        with program.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".debug_info")
            size = int(section["sh_size"]) if section is not None else 0
        if size >= DEBUG_BYTES:
            return size
        records = int(records * max(1.02, 1.01 * DEBUG_BYTES / max(size, 1)))


def unit_source(number: int, records: int) -> str:
    """Types that every unit has of its own, variables of them, and functions that use these."""
    parts = ["#include <mpi.h>", "#include <stdio.h>", "#include <stdlib.h>", "#include <unistd.h>"]
    for record in range(records):
        name = f"u{number}_{record}"
        parts.append(
            f"struct {name} {{ struct {name} *next; double values[{record + 1}]; enum {{ A_{name}, B_{name} }} kind; "
            f"union {{ long count; float share; char letters[8]; }} part; void (*run)(struct {name} *, int); "
            f"unsigned first : 3, second : 5; const char *name; }};\n"
            f"struct {name} first_{name}; static struct {name} *last_{name} = &first_{name};\n"
            f"int work_{name}(struct {name} *one, int depth) {{ static int calls; double sum = 0; struct {name} local; "
            f"local = *one; for (int i = 0; i < depth; i++) {{ double part = local.values[0] * i; sum += part; }}"
            f" last_{name}->part.count += ++calls; return (int)sum; }}"
        )
    if number == 0:
        parts.append(
            "int main(int argc, char **argv) { int word; MPI_Init(&argc, &argv); MPI_Barrier(MPI_COMM_WORLD); "
            'MPI_Comm_rank(MPI_COMM_WORLD, &word); if (word) for (puts("ready"), fflush(stdout);;) pause();'
            " MPI_Recv(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); return 0; }"
        )
    return "\n".join(parts) + "\n"


def index(pid: int, folder: Path) -> float:
    """Seconds of processor time until every variable of all privatized objects is known and kept, nothing before."""
    for path in (folder / "cache").rglob("*"):
        if path.is_file():
            path.unlink()
    found = open_job(str(pid), None)
    start = time.process_time()
    for each in found.privatized:
        declared = found.declared(each)
        assert isinstance(declared, Variables) and all(variable.name for variable in declared)
    return time.process_time() - start


def first_answer(pid: int) -> float:
    """Seconds of processor time of a new process that names a rank's variable by its address; the index is there."""
    found = open_job(str(pid), None)
    program = found.privatized[0]
    declared, copy = found.declared(program), found.present[0].placements[0]
    assert isinstance(declared, Variables) and isinstance(copy, Rebase)
    place = declared.variables[len(declared.variables) // 2].address or 0
    return measured(
        [str(BIN / "pieglobalsfind"), "--pid", str(pid), hex(place + program.load_bias + copy.copy - copy.original)]
    )[0]


def count(pid: int) -> int:
    """How many variables the privatized objects have."""
    found = open_job(str(pid), None)
    declared = [found.declared(each) for each in found.privatized]
    return sum(len(variables.variables) for variables in declared if isinstance(variables, Variables))
