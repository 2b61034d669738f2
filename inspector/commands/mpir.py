"""`inspector mpir`: publish a job's processes to parallel debuggers where the launcher does not, as charmrun.

Takes a job; finds its processes on this host, or on all hosts if the launcher answers tools by PMIx. It becomes
`rankmpir`, which publishes them as MPIR has it. It reads nothing else of the job, and stops nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
from pathlib import Path

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.jobs.members import identity, members_of
from pieglobalsfind.jobs.processes import ancestors, processes
from pieglobalsfind.shell.exit_status import print_error

from ..collect import pmix_table

PUBLISHER = "rankmpir"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Find the processes of a job on this host, and on all hosts where its launcher tells them by PMIx (prterun: "
        "Open MPI 5, PRRTE). Publish them in the table that parallel debuggers read from a launcher "
        "(MPIR_proctable), in the order of their indices, until all have ended. Attach the debugger to this "
        "command's process. For launchers that publish none, such as charmrun and prterun."
    )
    parser.epilog = "exit status: 0 the job has ended, 2 bad call or no such job"
    parser.add_argument(
        "job", metavar="JOB", help="its launcher's pid, one of its processes', or its id; running on this host"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector mpir`; returns the exit status."""
    words = by_launcher(options.job) or here(options.job)
    beside = Path(sys.argv[0]).resolve().parent
    publisher = shutil.which(PUBLISHER, path=str(beside)) or shutil.which(PUBLISHER)
    if publisher is None:
        raise RanklensError(f"{PUBLISHER} can't be found", "it is built by `make runtime`; put its folder on PATH")
    sys.stdout.flush()
    os.execv(publisher, [publisher, *words])


def here(job: str) -> list[str]:
    """The publisher's words for the processes on this host."""
    members = members_of(job)
    pids = [str(job_member.pid) for job_member in members.found if job_member.pid]
    if len(pids) < len(members.found) or not pids:
        raise UsageError(f"{members.name} has no process", "name a job that is running")
    for problem in members.problems:
        print_error("inspector", problem)
    return pids


def by_launcher(job: str) -> list[str]:
    """The publisher's words for the processes that the job's launcher tells of; none if it tells of none."""
    by_pid = processes()
    pids = [int(job)] if job.isdecimal() else [process.pid for process in by_pid.values() if process.launch == job]
    own = next((pid for pid in pids if pid in by_pid), None)
    above = () if own is None else (own, *ancestors(own, by_pid))
    launcher = next((pid for pid in above if by_pid[pid].name in pmix_table.LAUNCHERS), None)
    if own is None or launcher is None or identity(own) is not None:  # a registry knows better
        return []
    try:
        launched = pmix_table.launched_by(launcher)
    except RanklensError as error:
        print_error("inspector", f"{error.sentence}: only this host's processes are published")
        return []
    names = {process.namespace for process in launched} if own == launcher else {by_pid[own].launch}
    if len(names) > 1:
        raise UsageError(f"launcher {launcher} has started {len(names)} jobs", f"name one: {', '.join(sorted(names))}")
    rows = [process for process in launched if process.namespace in names]
    if any(identity(row.pid) for row in rows if is_here(row)) or any("@" in process.host for process in rows):
        return []
    return ["--while", str(launcher), *map(word_of, rows)] if rows else []


def is_here(process: pmix_table.LaunchedProcess) -> bool:
    """Whether a process is one of this host."""
    return process.host.partition(".")[0] == socket.gethostname().partition(".")[0]


def word_of(process: pmix_table.LaunchedProcess) -> str:
    """Return the publisher's word for a process."""
    return str(process.pid) if is_here(process) else f"{process.pid}@{process.host}:{process.program}"
