"""`inspector mpir`: parallel debuggers find the processes of a job whose launcher does not tell them, such as charmrun.

Takes a job; finds its processes on this host and becomes `rankmpir`, which publishes them as MPIR has it. It reads
nothing else of the job, and stops nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.jobs.members import members_of
from pieglobalsfind.shell.exit_status import print_error

PUBLISHER = "rankmpir"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Find the processes of a job on this host, and publish them in the table that parallel debuggers "
        "read from a launcher (MPIR_proctable), in the order of their indices, until all have ended. Attach the "
        "debugger to this command's process. For launchers that publish none, such as charmrun."
    )
    parser.epilog = "exit status: 0 the job has ended, 2 bad call or no such job"
    parser.add_argument(
        "job", metavar="JOB", help="its launcher's pid, one of its processes', or its id; running on this host"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector mpir`; returns the exit status."""
    members = members_of(options.job)
    pids = [str(job_member.pid) for job_member in members.found if job_member.pid]
    if len(pids) < len(members.found) or not pids:
        raise UsageError(f"{members.name} has no process", "name a job that is running")
    for problem in members.problems:
        print_error("inspector", problem)
    beside = Path(sys.argv[0]).resolve().parent
    publisher = shutil.which(PUBLISHER, path=str(beside)) or shutil.which(PUBLISHER)
    if publisher is None:
        raise RanklensError(f"{PUBLISHER} can't be found", "it is built by `make runtime`; put its folder on PATH")
    sys.stdout.flush()
    os.execv(publisher, [publisher, *pids])
