"""What the tasks of task.c say of themselves: the truth that tools are held against; and what is told as they start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import NotVirtualizedError
from pieglobalsfind.model import RankTable
from pieglobalsfind.targets import open_target
from tests.support.running import Job
from tests.support.system_calls import stops_of


@dataclass(frozen=True)
class Truth:
    """Where a task says that its variables are, and which kernel thread it is."""

    variable: int
    thread_local: int
    stack: int
    thread: int


def told_by(job: Job, tasks: int) -> dict[int, Truth]:
    """What each task has said, in the order of their numbers; waits until all have."""
    job.wait_for("TRUTH", times=tasks)
    said = [line.split() for line in job.lines if line.startswith("TRUTH ")]
    found = {int(one[1]): Truth(int(one[2], 16), int(one[3], 16), int(one[4], 16), int(one[5])) for one in said}
    return dict(sorted(found.items()))


def tables_of(
    command: Sequence[object], folder: Path, tasks: int, environment: Optional[Mapping[str, str]] = None
) -> Iterator[RankTable]:
    """What is told at each system call of the first thread, until all tasks are."""
    for pid in stops_of(command, folder, environment):
        with suppress(NotVirtualizedError):
            table = decode(open_target(pid=pid))
            yield table
            if len(table.ranks) == tasks:
                return
