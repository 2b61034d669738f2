"""Process-in-Process' tasks: damage in one task's stack leaves the others' answers true or absent."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from pieglobalsfind.decoders import libc_threads
from pieglobalsfind.decoders.pip import decode as pip
from pieglobalsfind.decoders.pip import threads
from pieglobalsfind.decoders.pip.decode import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Rank
from pieglobalsfind.target import Target
from tests.fuzz.patches import DamagedTarget, StandingTarget, windows_of, written
from tests.fuzz.scratch import IN_MEMORY
from tests.fuzz.sound_images import share
from tests.fuzz.sound_parts import keep, remember
from tests.support.fabricate.pip import STACK_SIZE, Job

FOLDER = tempfile.TemporaryDirectory(dir=IN_MEMORY)
JOBS = [Job(2), Job(3), Job(3, own_glibc=True), Job(3, is_process_mode=True, looks_from=1)]
SOUND = []
for number, job in enumerate(JOBS):
    Path(FOLDER.name, str(number)).mkdir()
    SOUND.append(job.target(Path(FOLDER.name, str(number))))
WINDOWS = [windows_of(target) for target in SOUND]
TARGETS = [StandingTarget(target) for target in SOUND]


def facts(rank: Rank) -> list[object]:
    return [rank.stack, *rank.placements]


def ranks(target: Target) -> Sequence[Rank]:
    table = decode(target)
    assert table is not None
    return table.ranks


TRUTHS = [{rank.rank: facts(rank) for rank in ranks(target)} for target in TARGETS]
share()
for target in TARGETS:
    remember(target, 0)
    remember(target.maps(), 1)
    remember(target.threads(), 1)
keep(pip, "_table", "_library", "_chains", "_debugs")
keep(libc_threads, "descriptions")
keep(threads, "find")


def seeds() -> list[bytes]:
    """Each job sound, and with a word changed here and there."""
    places = range(0, 1 << 16, 2777)
    return [bytes([job]) for job in range(len(JOBS))] + [
        bytes([place % len(JOBS)]) + written([(place, b"\xff" * 8)]) for place in places
    ]


def check(data: bytes) -> None:
    number = (data[0] if data else 0) % len(JOBS)
    job, truth = JOBS[number], TRUTHS[number]
    target = DamagedTarget(TARGETS[number], WINDOWS[number], data[1:])
    try:
        table = decode(target)
    except RanklensError:
        return
    if table is None:
        return
    stacks = {task: range(job.stack(task), job.stack(task) + STACK_SIZE) for task in job.present}
    damaged = {next((task for task, stack in stacks.items() if at in stack), -1) for at in target.touched}
    for rank in table.ranks:
        if damaged & {-1, rank.rank} or rank.rank not in truth:
            continue
        for told in facts(rank):
            assert told in truth[rank.rank] or isinstance(told, Absent), (rank.rank, told)
