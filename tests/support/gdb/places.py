"""The program that says where its variables are, jobs and core files of it, and a GDB to ask about them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.cores import core_of
from tests.support.running import ROOT, Job, built

SOURCES = ROOT / "tests" / "gdbext" / "sources"
RANKS = 4


@dataclass(frozen=True)
class Owned:
    """What the program itself says of one of its variables."""

    rank: int
    name: str
    address: int
    value: int


@dataclass(frozen=True)
class Places:
    """A held job, and what its ranks own by their own word: (rank, name) -> Owned."""

    pid: int
    owned: dict[tuple[int, str], Owned]


def parse_owned(lines: list[str]) -> dict[tuple[int, str], Owned]:
    found = {}
    for line in lines:
        words = line.split()
        if len(words) == 4 and words[2].startswith("0x"):
            owned = Owned(int(words[0]), words[1], int(words[2], 16), int(words[3]))
            found[owned.rank, owned.name] = owned
    return found


def compile_program(compiler: str, folder: Path, source: str, *flags: str) -> Path:
    program = folder / source.partition(".")[0]
    command = [str(built(compiler)), "-g", "-O0", *flags, str(SOURCES / source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=120, cwd=folder)
    return program


def hold(job: Job) -> Places:
    job.wait_for("ready")
    return Places(job.pid, parse_owned(job.lines))


def make_core(pid: int, folder: Path) -> Path:
    return core_of(pid, folder)
