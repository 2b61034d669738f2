"""The measure of the GDB extension on stock AMPI: rank k is as process k of the same source under MPICH would be.

Programs and questions are those of tests/oracle. AMPI has the program's main under another name; the processes, whose
main is a few lines without debug information, have it under the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.charm.jobs import AMPICC, COMPILERS, HOME, hook_in
from tests.conftest import Job
from tests.host.controller import Controller, Gdb
from tests.host.plan import Answers, Plan, Query
from tests.oracle import c_program, cxx_program, fortran_program
from tests.oracle.conftest import walking
from tests.oracle.exceptions import NeverAsked
from tests.oracle.program import ARGUMENT, MPICH, RANKS, SOURCES, Program, build
from tests.oracle.test_oracle import differences
from tests.sharing import Shared
from tests.waiting import wait_until_it_loops

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(1800),  # the debug information of a debug build of Charm++ is large
]
NEVER_ASKED = (
    NeverAsked(r"(bt|backtrace)( full)? -\d+", "counts from the outermost frame, which is AMPI's"),
    NeverAsked(r"info line", "what comes before in the function is a call of MPI, with other arguments"),
    NeverAsked(r"info line checkpoint", "to Fortran, which knows no case, functions of Charm++ have that name, too"),
    NeverAsked(r"tbreak stages::start", "in a shared object GDB takes a C++ function's stub for a place of it, too"),
)
# Of a debug build Charm++'s own debug information is the program's, too. Plain GDB says the same of a process with it.
NEVER_ASKED_OF_DEBUG_BUILDS = {
    "shapes": (
        NeverAsked(r"(whatis|ptype) census|whatis local_names", "std::string is spelled out, as Charm++ has it"),
    ),
    "fields": (NeverAsked(r"(list|info scope) checkpoint", "Fortran knows no case: functions of Charm++ are listed"),),
}
# At -O2 MPI's header decides about registers: only what is not optimized is the same code.
ASKED = {one.name: one for one in (c_program.PROGRAMS[0], cxx_program.PROGRAMS[0], fortran_program.PROGRAMS[0])}
# Stock AMPI gives what libc allocates for a rank of pie to libc's own free(), as libgfortran does ("munmap_chunk():
# invalid pointer"): the hook module mends that if it is asked to.
MENDED = {("fields", "pie"): "malloc"}
# In one namespace the loader keeps one instance of what is unique; test_methods.py asks for that.
OPTIONS = {"fs": ["-fno-gnu-unique"]}
PATIENCE = 900  # seconds


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


@dataclass(frozen=True)
class Runs:
    """Answers about the programs whose sources are in a folder of `root`."""

    root: Path
    gdb: Gdb

    def program(self, name: str) -> Program:
        """What is asked, of AMPI's main; without what has no answer."""
        main, found = main_of(name), ASKED[name]
        never = (*NEVER_ASKED, *(NEVER_ASKED_OF_DEBUG_BUILDS.get(name, ()) if is_debug_build() else ()))
        queries, walk = renamed(found.queries, main, never), renamed(found.walk, main, never)
        return replace(found, queries=queries, walk=walk, folder=self.root / "sources")

    def native(self, name: str, options: list[str]) -> Answers:
        """Each rank a process under MPICH, in a GDB that knows nothing of us."""

        def run(folder: Path) -> Answers:
            program = self.program(name)
            (folder / "caller.c").write_text(main_of(name).caller)
            subprocess.run(["gcc", "-fPIC", "-c", "caller.c"], cwd=folder, check=True, timeout=60)
            compilers = {
                ".c": [*MPICH[".c"], *RENAMED],
                ".cpp": [*MPICH[".cpp"], *RENAMED, *options],
                ".f90": MPICH[".f90"],
            }
            executable = build(program, compilers, folder, [str(folder / "caller.o")])
            plan = replace(walking(program), prepare=program.stop_natively)
            return Controller(self.gdb, folder).native([str(executable), ARGUMENT], RANKS, plan)

        return self._once("-".join([name, "native", *options]), run)

    def live(self, name: str, method: str) -> Answers:
        """All ranks in one process, to which GDB attaches."""

        def run(folder: Path) -> Answers:
            with self._held(name, method, folder) as job:
                return Controller(self.gdb, folder, PATIENCE).attached(job.pid, self._plan(name))

        return self._once(f"{name}-{method}", run)

    def core(self, name: str, method: str) -> Answers:
        """All ranks in one core file."""

        def run(folder: Path) -> Answers:
            with self._held(name, method, folder) as job:
                command = ["gcore", "-o", "core", str(job.pid)]
                subprocess.run(command, cwd=folder, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
            plan = replace(self._plan(name), walk=())
            return Controller(self.gdb, folder, PATIENCE).opened(folder / f"core.{job.pid}", folder / name, plan)

        return self._once(f"{name}-{method}-core", run)

    def _once(self, name: str, run: Callable[[Path], object]) -> Answers:
        return Answers.load(Shared(self.root).made(name, run) / "answers")

    def _plan(self, name: str) -> Plan:
        source = f"source {self.gdb.extension}"
        return replace(walking(self.program(name)), prepare=(source,), ranks=tuple(range(RANKS)))

    @contextmanager
    def _held(self, name: str, method: str, folder: Path) -> Iterator[Job]:
        compilers = {
            suffix: [str(Path(AMPICC).with_name(COMPILERS[suffix[1:]])), f"-{method}globals"] for suffix in MPICH
        }
        compilers[".cpp"] += OPTIONS.get(method, [])
        wish = MENDED.get((name, method), "")
        if wish:
            linked = [f"{key}={value}" for key, value in hook_in(folder).items()]
            compilers = {suffix: ["env", *linked, *words] for suffix, words in compilers.items()}
        build(self.program(name), compilers, folder)
        job = Job([f"./{name}", f"+vp{RANKS}", ARGUMENT], folder, dict(os.environ, RANKDEBUG=wish))
        try:
            job.wait_for("holding")
            wait_until_it_loops(job.pid)
            yield job
        finally:
            job.close()


def main_of(name: str) -> Main:
    return IN_FORTRAN if ASKED[name].sources[-1].endswith(".f90") else IN_C


def is_debug_build() -> bool:
    """Whether Charm++'s own parts were compiled with debug information."""
    return b".debug_info" in (HOME / "lib" / "libck.a").read_bytes()


def renamed(queries: Sequence[Query], main: Main, never: Sequence[NeverAsked]) -> tuple[Query, ...]:
    word = re.compile(rf"\b{main.main}\b")
    asked = (one for one in queries if not any(which.covers(one) for which in never))
    return tuple(Query(word.sub(main.name, one.frame), word.sub(main.name, one.command)) for one in asked)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, gdb: Path) -> Runs:
    """With sources of their own: AMPI's compilers leave files where they are called."""
    root = tmp_path_factory.mktemp("oracle")
    folder = shutil.copytree(SOURCES, root / "sources")
    (folder / "declared.h").write_text(DECLARED)
    fortran = folder / "fields.f90"
    fortran.write_text(fortran.read_text().replace(f"program {IN_FORTRAN.main}", f"subroutine {IN_FORTRAN.name}"))
    return Runs(root, Gdb(gdb))


def unequal(runs: Runs, name: str, method: str, virtual: Answers, walk: bool) -> str:
    program, native = runs.program(name), runs.native(name, OPTIONS.get(method, []))
    found = differences(program, program.queries, native, virtual)
    return found + (differences(program, program.walk, native, virtual, [RANKS - 1]) if walk else "")


@pytest.mark.parametrize("method", ["pie", "pip", "fs"])
@pytest.mark.parametrize("name", ASKED)
def test_live(name: str, method: str, runs: Runs) -> None:
    """What is asked about every rank, and where steps, calls and breakpoints bring the one that runs."""
    found = unequal(runs, name, method, runs.live(name, method), walk=True)
    assert not found, found


@pytest.mark.parametrize(("name", "method"), [("cells", "pie"), ("shapes", "pie"), ("fields", "pip")])
def test_core(name: str, method: str, runs: Runs) -> None:
    found = unequal(runs, name, method, runs.core(name, method), walk=False)
    assert not found, found


def test_enough_commands_are_compared(runs: Runs) -> None:
    programs = [runs.program(name) for name in ASKED]
    lacking = [len(ASKED[one.name].queries) - len(one.queries) for one in programs]
    assert max(lacking) <= 8, lacking
    asked = {query.command for program in programs for query in program.queries}
    steps = {query.command for program in programs for query in program.walk}
    assert len(asked) >= 500 and len(steps) >= 50
