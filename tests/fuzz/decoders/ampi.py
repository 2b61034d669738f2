"""Stock AMPI's threads: damage in one rank's thread and stack leaves the others' answers true or absent."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from pieglobalsfind.decoders import elf_scan
from pieglobalsfind.decoders.ampi import decode as ampi
from pieglobalsfind.decoders.ampi import threads
from pieglobalsfind.decoders.ampi.decode import decode
from pieglobalsfind.decoders.ampi.requests import AmpiRequests
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Rank
from pieglobalsfind.target import Target
from tests.fuzz.patches import DamagedTarget, StandingTarget, windows_of, written
from tests.fuzz.scratch import IN_MEMORY
from tests.fuzz.sound_images import share
from tests.fuzz.sound_parts import keep, remember
from tests.support.fabricate.ampi import MEGABYTE, PART, RANKS, Job, Request

FOLDER = tempfile.TemporaryDirectory(dir=IN_MEMORY)
REQUESTS = {1: (Request(2, 41), Request(1, 42, PART)), 2: (Request(1, 7, is_sent=True),)}
JOBS = [
    Job(method, has_tables=True, stripped=method == "tls", requests=REQUESTS, part=(3, 2, 1))
    for method in ("pie", "fs", "tls", "none")
]
THREAD = 0x1000  # bytes of a thread's structures
MOST = 1 << 12  # requests that a damaged list may seem to have in the heap of these jobs
SOUND = []
for number, job in enumerate(JOBS):
    Path(FOLDER.name, str(number)).mkdir()
    SOUND.append(job.target(Path(FOLDER.name, str(number))))
WINDOWS = [windows_of(target) for target in SOUND]
TARGETS = [StandingTarget(target) for target in SOUND]


def facts(rank: Rank) -> tuple[object, object]:
    return rank.stack, rank.context


def ranks(target: Target) -> Sequence[Rank]:
    table = decode(target)
    assert table is not None
    return table.ranks


TRUTHS = [{rank.rank: facts(rank) for rank in ranks(target)} for target in TARGETS]
share()
for target in TARGETS:
    remember(target, 0)
    remember(target.maps(), 1)
keep(ampi, "has_loader", "find_loader", "find_stripped", "find_threads", "_images", "_job", "_rank")
keep(elf_scan, "ranks_of_copies")
keep(threads, "words_of_elements", "threads_of_elements")


def seeds() -> list[bytes]:
    """Each job sound, and with a word changed here and there."""
    places = range(0, 1 << 16, 2777)
    return [bytes([job]) for job in range(len(JOBS))] + [
        bytes([place % len(JOBS)]) + written([(place, b"\xff" * 8)]) for place in places
    ]


def owner(job: Job, address: int) -> int:
    """The rank whose own bytes these are; -1: those of all."""
    for rank in range(RANKS):
        begins = job.thread(rank), job.begin(rank)
        if begins[0] <= address < begins[0] + THREAD or begins[1] <= address < begins[1] + MEGABYTE:
            return rank
    return -1


def check(data: bytes) -> None:
    number = (data[0] if data else 0) % len(JOBS)
    target = DamagedTarget(TARGETS[number], WINDOWS[number], data[1:])
    try:
        table = decode(target)
    except RanklensError:
        return
    if table is None:
        return
    damaged = {owner(JOBS[number], address) for address in target.touched}
    for rank in table.ranks:
        if damaged & {-1, rank.rank}:
            continue
        for true, told in zip(TRUTHS[number][rank.rank], facts(rank)):
            assert told == true or isinstance(told, Absent), (rank.rank, true, told)
    requests = AmpiRequests(target, table)
    for rank in table.ranks:
        waiting = requests.waiting(rank, "MPI_Waitall")
        assert waiting is None or len(waiting.others) < MOST, (rank.rank, waiting)
