"""Keep a collector running when the MPI launcher kills the processes that it started.

If one process of a job dies, launchers kill all others (MPICH's Hydra, Open MPI), and their findings would be lost. So
the process that was started only waits. The collector is in a session of its own, which such a launcher does not know,
writes to the same standard output, and ends by itself in bounded time. A signal that interrupts or terminates the
launcher ends the collector as well.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Optional

from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.shell.signals import ENDING, exit_status

# MPICH's mpiexec sends it to all processes where one has died (-disable-auto-cleanup), which would end them.
IGNORED = signal.SIGUSR1


def keep() -> Optional[int]:
    """None in the collector; where it was called, the collector's exit status, once it has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until both know what to do with them
    collector = os.fork()
    if not collector:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None

    def end(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(collector, signal.SIGKILL)  # what it has started ends with it
        os._exit(exit_status(number))

    for number in ENDING:
        signal.signal(number, end)
    signal.signal(IGNORED, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, ended = os.waitpid(collector, 0)
    status = os.waitstatus_to_exitcode(ended)
    if status < 0:
        print_error("inspector", f"the collector was ended by signal {-status} ({signal.strsignal(-status)})")
        return exit_status(-status)
    return status
