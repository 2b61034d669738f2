"""What ends, or has half ended, while it is to be stopped: it is called ended, and not forbidden."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from pieglobalsfind.errors import TargetEndedError
from pieglobalsfind.targets.ptrace import Standstill, has_exited, tracer_of
from tests.support.running import StartJob
from tests.support.waiting import wait_until

WITHOUT_ITS_FIRST_THREAD = """
import ctypes, platform, threading
number_of_exit = {"x86_64": 60, "aarch64": 93}[platform.machine()]
threading.Thread(target=threading.Event().wait).start()
print("READY", flush=True)
ctypes.CDLL(None).syscall(number_of_exit, 0)
"""
PAUSED = "import signal; print('READY', flush=True); signal.pause()"


@pytest.fixture
def zombie() -> Iterator[int]:
    """A process that has ended, and for which its parent has not waited."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    wait_until(lambda: has_exited(child.pid), "the process does not end")
    yield child.pid
    child.wait()


def test_a_zombie_has_ended(zombie: int) -> None:
    with pytest.raises(TargetEndedError, match=f"^process {zombie} has ended"):
        Standstill([zombie])


def test_a_process_goes_on_without_its_first_thread(start_job: StartJob) -> None:
    job = start_job(sys.executable, "-c", WITHOUT_ITS_FIRST_THREAD)
    job.wait_for("READY")
    wait_until(lambda: has_exited(job.pid), "the first thread does not end")
    standstill = Standstill([job.pid])
    (other,) = standstill.threads(job.pid)
    assert other != job.pid and tracer_of(other) != 0
    standstill.release()
    assert tracer_of(other) == 0


def test_one_that_has_ended_does_not_keep_others_from_being_stopped(zombie: int, start_job: StartJob) -> None:
    job = start_job(sys.executable, "-c", PAUSED)
    job.wait_for("READY")
    standstill = Standstill([zombie, job.pid])
    assert standstill.threads(zombie) == () and standstill.threads(job.pid) == (job.pid,)
    standstill.release()
    assert tracer_of(job.pid) == 0
