"""The stack of a rank that runs, by its kernel thread: never another's, whenever the rank is switched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Callable

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import RUNNING
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.unwind import UnwoundStack
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets import open_target
from pieglobalsfind.targets.live import LiveTarget
from tests.support.places import gcore
from tests.support.running import Job, StartJob, built
from tests.support.waiting import wait_until

from ..stacks.test_unwind_cache import TAKE, build

HELD = """
#include <fcntl.h>
int main(int argc, char **argv) {
    int rank, file = open(argv[1], O_RDWR);
    char byte;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        puts("ready"), fflush(stdout);
        read(file, &byte, 1);
    } else
        MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    take(rank, 2, 0);
}
"""
SUSPENDED = ["main", "take", "MPI_Recv"]


class Letting(LiveTarget):
    """Lets the rank go on when its thread is asked for the first time: `before` that is told where it was, or after."""

    def __init__(self, pid: int, go_on: Callable[[], None], before: bool) -> None:
        super().__init__(pid)
        self._go_on, self._before, self.asked = go_on, before, 0

    def threads(self) -> Sequence[KernelThread]:
        self.asked += 1
        if self.asked == 1 and self._before:
            self._go_on()
        threads = super().threads()
        if self.asked == 1 and not self._before:
            self._go_on()
        return threads


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    yield path, descriptor
    os.close(descriptor)


def in_read(job: Job) -> bool:
    """Whether the job's first thread waits in read(2), by the number of the call."""
    words = Path(f"/proc/{job.pid}/syscall").read_text().split()
    return words[0] == "0" and len(words) > 3


@pytest.fixture
def held(start_job: StartJob, tmp_path: Path, pipe: tuple[Path, int]) -> Job:
    """Rank 0 of two runs, and waits in a system call that says where it is; rank 1 waits in MPI."""
    job = start_job(built("rankrun"), "-n", 2, build(tmp_path, TAKE + HELD), pipe[0])
    job.wait_for("ready")
    wait_until(lambda: in_read(job), "rank 0 never came to read")
    return job


def functions(walked: UnwoundStack) -> list[str]:
    names = [call.function for call in walked.calls]
    return names[: 1 + next((at for at, name in enumerate(names) if name.startswith("MPI_")), len(names))]


def test_a_rank_that_waits_in_a_system_call(held: Job) -> None:
    moment = ProcessView(target := LiveTarget(held.pid), decode(target))
    assert moment.table.ranks[0].state == RUNNING
    main, read = functions(moment.walker.stack(moment.rank(0)))
    assert main == "main" and read.endswith("read")  # __libc_read, where its symbols are known


@pytest.mark.parametrize("before", [True, False])
def test_a_rank_that_is_switched_meanwhile(held: Job, pipe: tuple[Path, int], before: bool) -> None:
    """It has the stack that it has afterwards, and none that began as its thread's and ended as its own."""

    def go_on() -> None:
        os.write(pipe[1], b"x")
        held.wait_until_still()

    target = Letting(held.pid, go_on, before)
    moment = ProcessView(target, decode(target))
    rank = moment.rank(0)
    assert rank.state == RUNNING and not target.asked
    assert functions(moment.walker.stack(rank)) == SUSPENDED and target.asked
    assert decode(target).ranks[0].state != RUNNING


def test_a_rank_that_runs_by_its_record_alone(held: Job, pipe: tuple[Path, int], tmp_path: Path) -> None:
    """A core file of the middle of a switch: the thread is on the scheduler's stack already."""
    runs = decode(LiveTarget(held.pid)).ranks[0]
    os.write(pipe[1], b"x")
    held.wait_until_still()
    moment = ProcessView(target := open_target(core=str(gcore(held, tmp_path))), decode(target))
    assert functions(moment.walker.stack(moment.rank(0))) == SUSPENDED
    with pytest.raises(RanklensError, match=r"rank 0 was switched meanwhile, .* its thread is on another stack"):
        moment.walker.stack(runs)
