"""Globals of the programs in `busy.py`, by the program's symbols and each rank's copy, or its thread-local block."""

from __future__ import annotations

import subprocess
from functools import lru_cache

from inspector.job.job import Job
from pieglobalsfind.model import Rank, Rebase, TlsBlock


def value_of(job: Job, rank: Rank, name: str, size: int = 8) -> int:
    """A global of a rank as the target holds it."""
    return int.from_bytes(job.target.read(address_of(job, rank, name), size), "little")


def address_of(job: Job, rank: Rank, name: str) -> int:
    """Where a rank has its own instance of a global of the program."""
    (program,) = (elf_object for elf_object in job.table.objects if elf_object.is_program)
    own = [place for place in rank.placements if getattr(place, "object", None) == program.index]
    value, is_thread_local = symbols(program.path)[name]
    if is_thread_local:
        (block,) = (place for place in own if isinstance(place, TlsBlock) and not place.is_thread_pointer)
        return block.address + value
    (copy,) = (place for place in own if isinstance(place, Rebase))
    return program.load_bias + value - copy.original + copy.copy


@lru_cache
def symbols(path: str) -> dict[str, tuple[int, bool]]:
    """The value of each symbol of a file, and whether it is thread-local, as readelf prints them."""
    lines = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = (words for words in map(str.split, lines) if len(words) == 8 and words[0][:-1].isdigit())
    return {name: (int(value, 16), kind == "TLS") for _, value, _, kind, *_, name in rows}
