"""Globals of the programs in `busy.py`, by the program's symbols and each rank's copy."""

from __future__ import annotations

import subprocess
from functools import lru_cache

from inspector.job.job import Job
from pieglobalsfind.model import Rank, Rebase


def value_of(job: Job, rank: Rank, name: str, size: int = 8) -> int:
    """A global of a rank as the target holds it."""
    return int.from_bytes(job.target.read(address_of(job, rank, name), size), "little")


def address_of(job: Job, rank: Rank, name: str) -> int:
    """Where a rank has its own instance of a global of the program."""
    (program,) = (elf_object for elf_object in job.table.objects if elf_object.is_program)
    (copy,) = (
        placement
        for placement in rank.placements
        if isinstance(placement, Rebase) and placement.object == program.index
    )
    return program.load_bias + symbols(program.path)[name] - copy.original + copy.copy


@lru_cache
def symbols(path: str) -> dict[str, int]:
    """Of a file, as nm tells them."""
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {words[2]: int(words[0], 16) for words in map(str.split, lines) if len(words) == 3}
