"""The programs of tests/oracle on stock AMPI, and as processes under MPICH, whichever debugger asks about them.

AMPI has the program's main under another name; the processes, whose main is a few lines without debug information, have
it under the same. Under `tls` the programs' variables are thread-local, on both sides. With both flags they are plain:
stock AMPI puts a shared object's thread-local ones into the rank's stack, without their initial values. Under `none`
they are one for all ranks: of them a debugger without us says what is true, asked about the same job.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.charm.jobs import AMPICC, BOTH, COMPILERS, HOME, WORKERS, flags_of, hook_in
from tests.support.gdb.places import make_core
from tests.support.host.plan import Answers, Query
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import ARGUMENT, MPICH, RANKS, SOURCES, Compilers, Program, build
from tests.support.running import Job
from tests.support.sharing import Shared
from tests.support.waiting import wait_until, wait_until_it_loops

# Stock AMPI gives what libc allocates for a rank of pie to libc's own free(), as libgfortran does ("munmap_chunk():
# invalid pointer"): the hook module mends that if it is asked to.
MENDED = {("fields", "pie"): "malloc", ("fields", BOTH): "malloc"}
PATIENCE = 900  # seconds
LIVE = ("pie", BOTH, "pip", "fs", "tls", "none")
CORES = (
    ("cells", "pie", "gcore"),
    ("shapes", "pie", "kernel"),
    ("fields", "pie", "gcore"),
    ("cells", "pip", "kernel"),
    ("fields", "pip", "gcore"),
    ("cells", "fs", "kernel"),
    ("shapes", "fs", "gcore"),
    ("fields", "fs", "kernel"),
    ("cells", "tls", "gcore"),
    ("shapes", "tls", "kernel"),
    ("fields", "tls", "gcore"),
    ("cells", "none", "kernel"),
    ("shapes", "none", "gcore"),
    ("fields", "none", "kernel"),
    ("cells", BOTH, "gcore"),
    ("shapes", BOTH, "kernel"),
    ("fields", BOTH, "gcore"),
)
"""Which program's core file, and who writes it: each method's and each language's by either."""


@dataclass(frozen=True)
class Main:
    """A program's `main` under the name that AMPI has it by, and who calls it in a process."""

    main: str
    name: str
    caller: str


IN_C = Main(
    "main", "AMPI_Main", "int AMPI_Main(int, char **); int main(int n, char **words) { return AMPI_Main(n, words); }"
)
IN_FORTRAN = Main("oracle", "mpi_main", "void mpi_main_(void); int main(void) { mpi_main_(); }")
DECLARED = '#ifdef __cplusplus\nextern "C"\n#endif\nint AMPI_Main(int, char **);\n'
RENAMED = ["-Dmain=AMPI_Main", "-include", "declared.h"]
# At -O2 MPI's header decides about the registers of a function that calls MPI.
ALWAYS = {".c": ["-DHOLDING=__attribute__((optimize(0)))"]}
OPTIONS = {
    # In one namespace the loader keeps one instance of what is unique; test_methods.py asks for that.
    "fs": {".cpp": ["-fno-gnu-unique"]},
    "tls": {".c": ["-DPRIVATE=__thread"], ".cpp": ["-DPRIVATE=thread_local"], ".f90": ["-fopenmp"]},
}
# How AMPI has thread-local variables addressed.
ADDRESSED = ["-ftls-model=initial-exec", "-mno-tls-direct-seg-refs"]
LIKE_AMPI = {"tls": {".c": ADDRESSED, ".cpp": ADDRESSED}}


def with_options(compilers: Compilers, method: str) -> Compilers:
    options = OPTIONS.get(method, {})
    return {suffix: [*words, *ALWAYS.get(suffix, ()), *options.get(suffix, ())] for suffix, words in compilers.items()}


@dataclass(frozen=True)
class Programs:
    """The programs, each built once in a test run."""

    shared: Shared

    @property
    def _sources(self) -> Path:
        """In one folder for all builds: its name is part of the debug information."""

        def copy(folder: Path) -> None:
            shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
            (folder / "declared.h").write_text(DECLARED)
            fortran = folder / "fields.f90"
            text = fortran.read_text().replace(f"program {IN_FORTRAN.main}", f"subroutine {IN_FORTRAN.name}")
            fortran.write_text(text)

        return self.shared.made("ampi-sources", copy)

    def program(self, program: Program, never: Iterable[NeverAsked]) -> Program:
        """What is asked, of AMPI's main; without what has no answer."""
        queries, walk = (renamed(one, main_of(program), tuple(never)) for one in (program.queries, program.walk))
        return replace(program, queries=queries, walk=walk, folder=self._sources)

    def as_processes(self, program: Program, method: str) -> Path:
        """The executable that MPICH runs."""

        def compiled(folder: Path) -> None:
            (folder / "caller.c").write_text(main_of(program).caller)
            subprocess.run(["gcc", "-fPIC", "-c", "caller.c"], cwd=folder, check=True, timeout=60)
            renaming = {".c": RENAMED, ".cpp": RENAMED, ".f90": []}
            like_ampi = LIKE_AMPI.get(method, {})
            compilers = {one: [*words, *renaming[one], *like_ampi.get(one, ())] for one, words in MPICH.items()}
            self._build(program, with_options(compilers, method), folder, [str(folder / "caller.o")])

        return self.shared.made(f"ampi-{program}-{like(program, method)}-processes", compiled) / program.name

    def _virtual(self, program: Program, method: str) -> Path:
        """A folder with AMPI's program."""

        def compiled(folder: Path) -> None:
            options = flags_of(method)
            compilers = {suffix: [str(Path(AMPICC).with_name(COMPILERS[suffix[1:]])), *options] for suffix in MPICH}
            if (program.name, method) in MENDED:
                linked = [f"{key}={value}" for key, value in hook_in(folder).items()]
                compilers = {suffix: ["env", *linked, *words] for suffix, words in compilers.items()}
            self._build(program, with_options(compilers, method), folder)

        return self.shared.made(f"ampi-{program}-{method}", compiled)

    def _build(self, program: Program, compilers: Compilers, folder: Path, linked: Sequence[str] = ()) -> None:
        with (self.shared.root / "ampi-compiler.lock").open("w") as lock:  # AMPI's leave files where they are called
            fcntl.flock(lock, fcntl.LOCK_EX)
            build(program, compilers, folder, linked)

    @contextmanager
    def held(self, program: Program, method: str, folder: Path) -> Iterator[Job]:
        """A job of one process that stands where it is asked about: the last rank loops, the others wait."""
        # AMPI itself writes into the folder, and a program is large with its debug information.
        shutil.copytree(self._virtual(program, method), folder, copy_function=os.link, dirs_exist_ok=True)
        wish = MENDED.get((program.name, method), "")
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # what shells start in the background ignores it, children too
        job = Job([f"./{program.name}", f"+vp{RANKS}", *WORKERS, ARGUMENT], folder, dict(os.environ, RANKDEBUG=wish))
        try:
            job.wait_for("holding")
            wait_until_it_loops(job.pid)
            yield job
        finally:
            job.close()


def answers_in(folder: Path) -> Answers:
    return Answers.load(folder / "answers")


def alone_in(folder: Path) -> Path:
    """The folder for what a debugger without us says of the job in a folder."""
    alone = folder / "alone"
    alone.mkdir(exist_ok=True)
    return alone


def like(program: Program, method: str) -> str:
    """The first of the methods for which the program's processes are built with the same options."""
    suffixes = {Path(source).suffix for source in program.sources}

    def options(one: str) -> list[object]:
        return [OPTIONS.get(one, {}).get(suffix) for suffix in sorted(suffixes)]

    return next(one for one in LIVE if options(one) == options(method))


def core_of(job: Job, folder: Path, writer: str) -> Path:
    """A core file of a held job, by gcore or by the kernel, which ends the job for it."""
    if writer == "gcore":
        return make_core(job.pid, folder)
    most = resource.prlimit(job.pid, resource.RLIMIT_CORE)[1]
    resource.prlimit(job.pid, resource.RLIMIT_CORE, (most, most))
    os.kill(job.pid, signal.SIGQUIT)
    job.process.wait(60)
    paths = wait_until(lambda: list(folder.glob("core*")), "the kernel wrote no core file here")
    return paths[0]


def main_of(program: Program) -> Main:
    return IN_FORTRAN if program.sources[-1].endswith(".f90") else IN_C


def is_debug_build() -> bool:
    """Whether Charm++'s own parts were compiled with debug information."""
    return b".debug_info" in (HOME / "lib" / "libck.a").read_bytes()


def renamed(queries: Sequence[Query], main: Main, never: Sequence[NeverAsked]) -> tuple[Query, ...]:
    """The questions with main's name on AMPI; LLDB knows Fortran's by the linker's."""
    names = {main.main: main.name, "MAIN__": f"{main.name}_"}
    word = re.compile(rf"\b(?:{'|'.join(names)})\b")

    def new(text: str) -> str:
        return word.sub(lambda found: names[found[0]], text)

    asked = (query for query in queries if not any(which.covers(query) for which in never))
    return tuple(Query(new(one.frame), new(one.command)) for one in asked)
