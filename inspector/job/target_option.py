"""What the user named: a process, a file of one, or all processes of a job.

Takes words of the command line; gives a target, or a job's members. It reads no ranks, and imports little: a debugger
waits for `inspector serve` to start.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Optional

from pieglobalsfind.errors import NotVirtualizedError, RanklensError, UsageError
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.procfs import is_folder
from pieglobalsfind.targets.refuse_charm_checkpoint import check_is_none

if TYPE_CHECKING:
    from pieglobalsfind.jobs.members import Members


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare what says what is looked at: one target, or all processes of a job."""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="PID|FILE|DIR",
        help="a running process, a core file, a snapshot, or the folder of a checkpoint or of a job's snapshots",
    )
    parser.add_argument(
        "--job", metavar="JOB", help="all processes of a job: its launcher's pid, one of its processes', or its id"
    )
    parser.add_argument("--exe", metavar="FILE", help="the program that left the core file")


def job_named(job: Optional[str], target: Optional[str], exe: Optional[str]) -> Optional[Members]:
    """The members of the whole job that was asked for: by --job, or by a checkpoint's folder; None: one process.

    Raises `UsageError` where what was asked for does not go together.
    """
    if (job is None) == (target is None):
        raise UsageError("name one process, one file, or a job", "give PID, FILE, DIR or --job JOB")
    if job is None and not is_folder(str(target)):
        return None
    if exe:
        raise UsageError("--exe is for one file", "leave it out, or name one")
    from pieglobalsfind.jobs.members import members_of  # late: not for one process

    return members_of(str(job or target))


def open_named(what: str, exe: Optional[str]) -> Target:
    """Open a pid, a core file or a snapshot."""
    if what.isdecimal():
        return open_target(pid=int(what), exe=exe)
    if is_folder(what):
        check_is_none(what)
        hint = "`report`, `stacks`, `waits`, `globals` and `events` take a job's; give others one of the files in it"
        raise UsageError(f"{what} is a folder", hint)
    if os.access(what, os.F_OK):
        return open_target(core=what, exe=exe)
    raise UsageError(f"{what!r} is neither a process nor a file", "give the PID of a running job, or a file of one")


def explained(target: Target, error: RanklensError) -> RanklensError:
    """The error of a process without ranks; it names the job if the process has started one."""
    if isinstance(error, NotVirtualizedError) and isinstance(target, LiveTarget):
        from pieglobalsfind.jobs.members import launcher_error

        return launcher_error(target.pid) or error
    return error
