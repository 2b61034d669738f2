"""The programs of tests/oracle under SMPI, and as processes under MPICH, whichever debugger asks about them.

SMPI calls a C program's own main. smpif90 makes of a Fortran program a subroutine in a file of another name, which it
deletes: here it is one from the start, on both sides.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.host.plan import Answers, Query
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import ARGUMENT, MPICH, RANKS, SOURCES, Program, build
from tests.support.running import Job
from tests.support.sharing import Shared
from tests.support.smpi.jobs import COMPILERS, command, process_of
from tests.support.waiting import wait_until_it_loops

MAIN = ("oracle", "user_main")  # of the Fortran program, and what SMPI calls
TAG, NEW_TAG = (
    re.compile(r"\benum option\b"),
    "enum wish",
)  # SMPI's headers include <getopt.h>, which has a struct option
CALLER = "void user_main_(void); int main(void) { user_main_(); }"
OWN_INSTANCES = "-Wl,-Bsymbolic-functions"  # of templates, as in a process; a copy uses those that libstdc++ has
OPTIONS = {
    ".c": [],
    ".cpp": ["-fno-gnu-unique"],  # of what is unique the loader keeps one; test_ranks.py asks for that
    ".f90": ["-ff2c", "-fno-second-underscore"],  # which smpif90 gives
}


@dataclass(frozen=True)
class Programs:
    """The programs, each built once in a test run."""

    shared: Shared

    @property
    def _sources(self) -> Path:
        """In one folder for all builds: its name is part of the debug information."""

        def copy(folder: Path) -> None:
            shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
            fortran = folder / "fields.f90"
            text = fortran.read_text().replace(f"program {MAIN[0]}", f"subroutine {MAIN[1]}")
            fortran.write_text(re.sub("program", "code", text, flags=re.IGNORECASE))
            for path in folder.glob("cells*.[ch]"):
                path.write_text(TAG.sub(NEW_TAG, path.read_text()))

        return self.shared.made("smpi-sources", copy)

    def program(self, program: Program, never: Iterable[NeverAsked]) -> Program:
        """What is asked, without what has no answer."""
        unasked = tuple(never)
        is_fortran = program.sources[-1].endswith(".f90")
        queries, walk = (renamed(one, is_fortran, unasked) for one in (program.queries, program.walk))
        return replace(program, queries=queries, walk=walk, folder=self._sources)

    def as_processes(self, program: Program) -> Path:
        """The executable that MPICH runs."""

        def compiled(folder: Path) -> None:
            linked = []
            if program.sources[-1].endswith(".f90"):
                (folder / "caller.c").write_text(CALLER)
                subprocess.run(["gcc", "-fPIC", "-c", "caller.c"], cwd=folder, check=True, timeout=60)
                linked = [str(folder / "caller.o")]
            compilers = {suffix: [*words, *OPTIONS[suffix]] for suffix, words in MPICH.items()}
            build(program, compilers, folder, linked)

        return self.shared.made(f"smpi-{program}-processes", compiled) / program.name

    def _virtual(self, program: Program) -> Path:
        # smpicc and smpicxx give the compiler whole paths of sources.
        short = f"-fdebug-prefix-map={program.folder}/="
        compilers = {suffix: [name, short, *OPTIONS[suffix], OWN_INSTANCES] for suffix, name in COMPILERS.items()}
        return self.shared.made(f"smpi-{program}", lambda folder: build(program, compilers, folder)) / program.name

    @contextmanager
    def held(self, program: Program, folder: Path, options: Sequence[str] = ()) -> Iterator[tuple[Job, int]]:
        """A job that stands where it is asked about: the last rank loops, the others wait; and its process."""
        executable = Path(shutil.copy(self._virtual(program), folder / program.name))
        job = Job([*command(folder, RANKS, executable, *options), ARGUMENT], folder)
        try:
            job.wait_for("holding")
            pid = process_of(job)
            wait_until_it_loops(pid)
            yield job, pid
        finally:
            job.close()


def renamed(queries: Sequence[Query], is_fortran: bool, never: Sequence[NeverAsked]) -> tuple[Query, ...]:
    """The questions with the name that SMPI has main by."""
    names = {MAIN[0]: MAIN[1], "MAIN__": f"{MAIN[1]}_"} if is_fortran else {}
    word = re.compile(rf"\b(?:{'|'.join(names)})\b") if names else None

    def new(text: str) -> str:
        return word.sub(lambda found: names[found[0]], text) if word is not None else TAG.sub(NEW_TAG, text)

    asked = (query for query in queries if not any(which.covers(query) for which in never))
    return tuple(Query(new(one.frame), new(one.command)) for one in asked)


def answers_in(folder: Path) -> Answers:
    return Answers.load(folder / "answers")
