"""Declare the option `--mpi`, and run a command as one collector of many.

Takes the command's options and what is to be read; hands the whole job's findings to the command in the first
collector, and gives each one's exit status.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from pieglobalsfind.errors import UsageError

from ..job.flight_recorder import seconds_of
from ..job.reading import Way, way_of

TIMEOUT = "60s"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--mpi",
        action="store_true",
        help="under mpiexec, mpirun or srun: a collector on each node, one answer; without --job of the only job there",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        help=f"with --mpi: how long to wait for a collector that does not answer ({TIMEOUT})",
    )


def is_collector(options: argparse.Namespace) -> bool:
    """Whether the call is for collectors; raises `UsageError` where the options don't go together."""
    if not options.mpi:
        if options.timeout is not None:
            raise UsageError("--timeout is for collectors, and this call starts none", "add --mpi, or leave it out")
        return False
    if options.target is not None or getattr(options, "exe", None) is not None:
        raise UsageError("--mpi is for whole jobs", "name one by --job, or leave it out where only one is there")
    if hasattr(options, "freeze") and way_of(options) != Way():
        raise UsageError("collectors pause processes for milliseconds", "leave --freeze and --nonblocking out")
    timeout_of(options)  # refused here, before a process is made for the collector
    return True


def timeout_of(options: argparse.Namespace) -> float:
    """The time for what hangs, in seconds."""
    return seconds_of(options.timeout or TIMEOUT, "--timeout")


def guarded(work: Callable[[], int]) -> int:
    """Do the work in a process that outlives its launcher's impatience; returns its exit status."""
    from . import launcher_guard

    status = launcher_guard.keep()
    if status is not None:
        return status
    status = work()
    sys.stdout.flush()
    return status
