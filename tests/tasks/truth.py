"""What the tasks of task.c say of themselves: the truth that tools are held against."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conftest import Job


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
