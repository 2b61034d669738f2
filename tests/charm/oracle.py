"""The programs of tests/oracle on stock AMPI, and as processes under MPICH, whichever debugger asks about them.

AMPI has the program's main under another name; the processes, whose main is a few lines without debug information, have
it under the same.
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

from tests.charm.jobs import AMPICC, COMPILERS, HOME, WORKERS, hook_in
from tests.conftest import Job
from tests.host.plan import Answers, Query
from tests.oracle.exceptions import NeverAsked
from tests.oracle.program import ARGUMENT, MPICH, RANKS, SOURCES, Program, build
from tests.sharing import Shared
from tests.waiting import wait_until_it_loops

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
class Programs:
    """The programs, by sources in a folder of `root`: AMPI's compilers leave files where they are called."""

    root: Path

    @staticmethod
    def in_folder(root: Path) -> Programs:
        folder = shutil.copytree(SOURCES, root / "sources")
        (folder / "declared.h").write_text(DECLARED)
        fortran = folder / "fields.f90"
        fortran.write_text(fortran.read_text().replace(f"program {IN_FORTRAN.main}", f"subroutine {IN_FORTRAN.name}"))
        return Programs(root)

    def program(self, found: Program, never: Sequence[NeverAsked]) -> Program:
        """What is asked, of AMPI's main; without what has no answer."""
        queries, walk = (renamed(one, main_of(found), never) for one in (found.queries, found.walk))
        return replace(found, queries=queries, walk=walk, folder=self.root / "sources")

    def as_processes(self, program: Program, options: Sequence[str], folder: Path) -> Path:
        """The executable that MPICH runs; `options` are C++'s."""
        (folder / "caller.c").write_text(main_of(program).caller)
        subprocess.run(["gcc", "-fPIC", "-c", "caller.c"], cwd=folder, check=True, timeout=60)
        compilers = {
            ".c": [*MPICH[".c"], *RENAMED],
            ".cpp": [*MPICH[".cpp"], *RENAMED, *options],
            ".f90": MPICH[".f90"],
        }
        return build(program, compilers, folder, [str(folder / "caller.o")])

    @contextmanager
    def held(self, program: Program, method: str, folder: Path) -> Iterator[Job]:
        """A job of one process that stands where it is asked about: the last rank loops, the others wait."""
        compilers = {
            suffix: [str(Path(AMPICC).with_name(COMPILERS[suffix[1:]])), f"-{method}globals"] for suffix in MPICH
        }
        compilers[".cpp"] += OPTIONS.get(method, [])
        wish = MENDED.get((program.name, method), "")
        if wish:
            linked = [f"{key}={value}" for key, value in hook_in(folder).items()]
            compilers = {suffix: ["env", *linked, *words] for suffix, words in compilers.items()}
        build(program, compilers, folder)
        job = Job([f"./{program.name}", f"+vp{RANKS}", *WORKERS, ARGUMENT], folder, dict(os.environ, RANKDEBUG=wish))
        try:
            job.wait_for("holding")
            wait_until_it_loops(job.pid)
            yield job
        finally:
            job.close()

    def once(self, name: str, run: Callable[[Path], object]) -> Answers:
        """What `run` has answered in a folder of its own, however often it is asked for."""
        return Answers.load(Shared(self.root).made(name, run) / "answers")


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

    asked = (one for one in queries if not any(which.covers(one) for which in never))
    return tuple(Query(new(one.frame), new(one.command)) for one in asked)
