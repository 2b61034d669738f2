"""What an oracle program is, and how its two builds are made.

Takes the sources under tests/programs/oracle; gives an ordinary MPICH executable and a program for virtual ranks, both
compiled with the same flags from the same paths, so that their debug information says the same.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.host.plan import Query
from tests.support.running import PROGRAMS, built
from tests.support.sharing import Shared

SOURCES = PROGRAMS / "oracle"
HOLD_MARK = "held here"
RANKS = 4
ARGUMENT = "--level=3"

Compilers = Mapping[str, Sequence[str]]
"""By the suffix of a source, a compiler and options."""

MPICH: Compilers = {".c": ["mpicc.mpich"], ".cpp": ["mpicxx.mpich"], ".f90": ["mpifort.mpich"]}
VIRTUAL = {".c": "rankcc", ".cpp": "rankcxx", ".f90": "rankfort"}
STANDARD = {".c": ("-std=gnu11",), ".cpp": ("-std=c++17",), ".f90": ()}
# The wrappers of Debian's MPICH bring flags of their own; what changes code is set to the same on both sides.
_CODE = (
    *("-g", "-gno-record-gcc-switches", "-fPIC", "-ffp-contract=off"),
    *("-fno-stack-protector", "-fno-stack-clash-protection", "-fcf-protection=none", "-fno-lto"),
)
# Ubuntu's wrappers ask for frame pointers; the padding before a loop depends on where its function begins.
_OPTIMIZED = ("-fomit-frame-pointer", "-momit-leaf-frame-pointer", "-falign-functions=64")


def code_flags(optimization: str) -> tuple[str, ...]:
    return (*_CODE, *(_OPTIMIZED if optimization != "-O0" else ()), optimization)


@dataclass(frozen=True)
class Program:
    """One oracle program at one optimization level, and all that is asked about it.

    `walk` is what the last rank, which runs, is made to do after that; `folder` holds the sources.
    """

    name: str
    sources: tuple[str, ...]
    optimization: str
    queries: tuple[Query, ...]
    walk: tuple[Query, ...] = ()
    folder: Path = SOURCES

    @property
    def hold_location(self) -> str:
        """`file:line` of the loop in which the last rank runs."""
        for source in self.sources:
            lines = (self.folder / source).read_text().splitlines()
            for number, line in enumerate(lines, 1):
                if HOLD_MARK in line and not line.lstrip().startswith(("!", "/*", "*")):
                    return f"{source}:{number}"
        raise LookupError(f"no line of {self.sources} says {HOLD_MARK!r}")

    @property
    def stop_natively(self) -> tuple[str, ...]:
        """GDB commands that bring a process to the place where its rank is held under virtual ranks."""
        return (
            "set language c",  # of the condition: Fortran has no such strings
            'tbreak MPI_Recv if $_any_caller_matches(".*hold_blocked", 3)',
            f"tbreak {self.hold_location}",
            "run",
            "set language auto",
        )

    def __str__(self) -> str:
        return f"{self.name}{self.optimization}"


def virtual() -> Compilers:
    return {suffix: [str(built(name))] for suffix, name in VIRTUAL.items()}


def build(program: Program, compilers: Compilers, directory: Path, linked: Sequence[str] = ()) -> Path:
    """Compile every source with the compiler of its suffix, link with the last one's, and return the program.

    `linked` is linked with it. Raises subprocess.CalledProcessError; the compiler's messages are on standard error.
    """
    flags = code_flags(program.optimization)
    objects = []
    for source in program.sources:
        suffix = Path(source).suffix
        objects.append(str(directory / f"{source}.o"))
        modules = (f"-J{directory}",) if suffix == ".f90" else ()
        words = (*compilers[suffix], *STANDARD[suffix], *flags, *modules, "-c", source, "-o", objects[-1])
        # In one folder for both builds: the folder's name is part of the debug information.
        subprocess.run(words, cwd=program.folder, check=True, timeout=120)
    executable = directory / program.name
    words = (*compilers[Path(program.sources[-1]).suffix], *flags, *objects, *linked, "-o", str(executable))
    subprocess.run(words, cwd=directory, check=True, timeout=120)
    return executable


def copied(program: Program, compilers: Compilers, shared: Shared, directory: Path) -> Path:
    """The program in a directory of the caller's; it is built once in a test run for the same compilers."""
    name = f"{program}.{Path(compilers['.c'][0]).name}"
    made = shared.made(name, lambda folder: build(program, compilers, folder))
    return Path(shutil.copy(made / program.name, directory))
