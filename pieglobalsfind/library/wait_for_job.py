"""Waits for a job that a test has started; if the job hangs, ends it and reports where all its ranks are.

Takes a started process, which may be the job's launcher. It reads all processes of the job at one moment, and ends them
afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Union

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import members_of, strongest_records
from pieglobalsfind.jobs.processes import descendants, processes
from pieglobalsfind.library.job import view_of
from pieglobalsfind.library.stacks import Stack, stacks_of, tree
from pieglobalsfind.model import Absent
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget

Stacks = dict[int, Union[Stack, Absent]]


class HangError(RanklensError):
    """A job has not ended in time. `stacks` are its ranks' at that moment, or why a rank has none."""

    def __init__(self, sentence: str, stacks: Stacks) -> None:
        super().__init__(sentence)
        self.stacks = stacks


def wait(process: subprocess.Popen[str] | subprocess.Popen[bytes], timeout: float) -> int:
    """Wait for the end of a job that `subprocess.Popen` has started, at most `timeout` seconds; return its exit status.

    Raises `HangError` after that, which says where every rank is; the job's processes are killed then.
    """
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        sentence, stacks = _report(process.pid)
    finally:
        if process.poll() is None:
            _kill(process)
    raise HangError(f"the job still ran after {timeout:g} s, {sentence}", stacks)


def _report(pid: int) -> tuple[str, Stacks]:
    """What to say of the ranks of a job, and their stacks."""
    try:
        stacks = job_stacks(pid)
    except RanklensError as error:
        return f"and its ranks can't be read: {error}", {}
    return f"its ranks are here:\n{tree(stacks)}", stacks


def job_stacks(pid: int) -> Stacks:
    """Return the stacks of all ranks of a job on this host, at one moment.

    `pid` is that of the job's launcher or of any of its processes. Raises `RanklensError` if none of them can be read.
    """
    targets = [
        target
        for target in (job_member.open() for job_member in members_of(str(pid)).found)
        if isinstance(target, LiveTarget)
    ]
    stacks = at_one_moment([plan_for(target, False) for target in targets], False, _stacks_of_all)
    return {rank: stacks[rank] for rank in sorted(stacks)}


def _stacks_of_all(targets: Sequence[PausedTarget]) -> Stacks:
    """Each rank's stack in the process that knows best where the rank is."""
    views = [view_of(target) for target in targets]
    homes = strongest_records((view, view.table.ranks) for view in views)
    stacks: Stacks = {}
    for view in views:
        here = [number for number, (_, home) in homes.items() if home is view]
        stacks.update(stacks_of(view, here, runtime=False))
    return stacks


def _kill(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """A launcher can't end its processes any more when it is killed."""
    members: tuple[int, ...] = ()
    with suppress(RanklensError):
        members = tuple(job_member.pid for job_member in members_of(str(process.pid)).found)
    for pid in {process.pid, *descendants(process.pid, processes()), *members}:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
