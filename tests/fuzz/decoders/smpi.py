"""SMPI's actors and stacks: damage in one rank's stack leaves the others' answers true or absent.

No module fabricates SimGrid's structures, so a real job that stands still is read, and damaged only in what is read.
"""

from __future__ import annotations

import atexit
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from pieglobalsfind.decoders.smpi import copies, images, threads
from pieglobalsfind.decoders.smpi import decode as smpi
from pieglobalsfind.decoders.smpi.decode import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.processes import descendants, processes
from pieglobalsfind.model import Absent, Rank, RankTable, Region
from pieglobalsfind.target import Target, read_or_none
from pieglobalsfind.targets.live import LiveTarget
from tests.fuzz.patches import WINDOW, DamagedTarget, StandingTarget, written
from tests.fuzz.sound_images import share
from tests.fuzz.sound_parts import keep, remember
from tests.support.smpi.jobs import COMPILERS, SMPIRUN, SOURCES, command, sleeps

RANKS = 4
LARGEST = 4096  # bytes of a read that is damaged; code and symbols are read in larger ones


class Reads(LiveTarget):
    """Notes what is read of memory that the process may write."""

    def __init__(self, pid: int) -> None:
        self.noted: set[int] = set()
        self._writable: list[tuple[int, int]] = []
        super().__init__(pid)
        self._writable = [(mapping.start, mapping.end) for mapping in self.maps() if mapping.writable]

    def read(self, address: int, size: int) -> bytes:
        if size <= LARGEST and any(start <= address < end for start, end in self._writable):
            self.noted.update(range(address - address % WINDOW, address + size, WINDOW))
        return super().read(address, size)

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """One at a time, so that all are noted."""
        return [read_or_none(self, *place) for place in places]


def start() -> int:
    """The process of a job whose ranks have come to wait; it ends with this one."""
    folder = tempfile.TemporaryDirectory()
    program = Path(folder.name, "truth")
    subprocess.run([COMPILERS[".c"], "-g", "-O0", SOURCES / "truth.c", "-o", program], check=True, timeout=120)
    words = command(Path(folder.name), RANKS, program)
    job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert job.stdout is not None
    while b"ready" not in (line := job.stdout.readline()):
        assert line, "smpirun has ended"
    known = processes()
    pid = next(descendant for descendant in descendants(job.pid, known) if known[descendant].name == "smpimain")

    def end() -> None:
        subprocess.run(["kill", "-KILL", str(pid), str(job.pid)], check=False)
        job.wait()
        folder.cleanup()

    atexit.register(end)
    while not sleeps(pid):
        time.sleep(0.01)
    return pid


def facts(rank: Rank) -> list[object]:
    return [rank.stack, rank.context, *rank.placements]


def decoded(target: Target) -> RankTable:
    table = decode(target)
    assert table is not None
    return table


if SMPIRUN:
    LIVE = Reads(start())
    decode(LIVE)
    WINDOWS, SOUND = sorted(LIVE.noted), StandingTarget(LIVE)
    TRUTH = {rank.rank: rank for rank in decoded(SOUND).ranks}
    assert len(TRUTH) == RANKS
    share()
    remember(SOUND, 0)
    remember(SOUND.maps(), 1)
    keep(
        smpi, "find_library", "find_actors", "identities", "saved_contexts", "find_threads", "layout_of", "redirections"
    )
    keep(threads, "_place", "descriptions", "control_blocks")
    keep(images, "program_path")
    keep(copies, "entries", "copies", "entered")


def seeds() -> list[bytes]:
    """No damage, and a word here and there of what is read; none without SimGrid."""
    places = range(0, len(WINDOWS) * WINDOW, max(len(WINDOWS) * WINDOW // 24, 8)) if SMPIRUN else ()
    return [b"", *(written([(place, b"\xff" * 8)]) for place in places)]


def owner(address: int) -> int:
    """The rank in whose stack a byte lies; -1: in none."""
    for rank in TRUTH.values():
        if isinstance(rank.stack, Region) and rank.stack.start <= address < rank.stack.end:
            return rank.rank
    return -1


def check(data: bytes) -> None:
    if not SMPIRUN:
        return
    target = DamagedTarget(SOUND, WINDOWS, data)
    try:
        table = decode(target)
    except RanklensError:
        return
    damaged = {owner(address) for address in target.touched}
    for rank in table.ranks if table is not None else ():
        if damaged & {-1, rank.rank}:
            continue
        for told in facts(rank):
            assert isinstance(told, Absent) or told in facts(TRUTH[rank.rank]), (rank.rank, told)
