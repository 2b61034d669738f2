"""AArch64 programs under qemu-user, read by this machine's tools: values, owners and stacks as programs print them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TypeVar, Union

import pytest

import pieglobalsfind
from pieglobalsfind.machine.aarch64 import AARCH64
from pieglobalsfind.model import Absent
from tests.aarch64.conftest import Aarch64
from tests.support.running import Job, StartJob, built
from tests.support.waiting import wait_until

Answer = TypeVar("Answer")
RANKS = 3
WHOLE = ("pie", "hls", "pip", "fs", "pipthread")  # that make every variable of the program private


def run(aarch64: Aarch64, method: str, *options: object, program: str = "") -> subprocess.CompletedProcess[str]:
    command = aarch64.command(method, aarch64.built(program or method), RANKS, *options)
    return subprocess.run(
        [str(word) for word in command],
        env=aarch64.environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def expected(rank: int, exported: int) -> list[str]:
    return [str(exported + 5), f"{1.5 + rank:g}", str(4 + 10 * rank), str(40 + rank)]


@pytest.mark.parametrize("method", [*WHOLE, "tpsl"])
def test_each_rank_has_its_own(aarch64: Aarch64, method: str) -> None:
    done = run(aarch64, method)
    rows = sorted(line.split() for line in done.stdout.splitlines())
    assert [row[2:] for row in rows] == [expected(rank, 100 * rank) for rank in range(RANKS)], done.stderr


@pytest.mark.parametrize("options", [("--pes", 2), ("--procs", 2), ("--rewrite", "exact"), ("--share-code",)])
def test_ways_to_run(aarch64: Aarch64, options: tuple[object, ...]) -> None:
    rows = sorted(line.split() for line in run(aarch64, "pie", *options).stdout.splitlines())
    assert [row[2:] for row in rows] == [expected(rank, 100 * rank) for rank in range(RANKS)]


def test_swap_makes_exported_variables_private(aarch64: Aarch64) -> None:
    rows = sorted(line.split() for line in run(aarch64, "swap").stdout.splitlines())
    assert [(row[2], row[4]) for row in rows] == [(str(5 + 100 * rank), str(4 + 10 * rank)) for rank in range(RANKS)]


def test_tls_word_is_refused(aarch64: Aarch64) -> None:
    done = run(aarch64, "tls-word", program="pie")
    assert (done.returncode, done.stdout) == (2, "") and "use --method tls" in done.stderr


# ---- read from outside ----


def hold(aarch64: Aarch64, start_job: StartJob, method: str, *options: str) -> tuple[Job, dict[int, list[str]]]:
    """A job of which all ranks but 0 wait in MPI_Recv, and what each has printed."""
    program = aarch64.built(method, *options)
    job = start_job(*aarch64.command(method, program, RANKS), "hold", environment=aarch64.environment)
    job.wait_for(" 0x", RANKS, timeout=200)
    rows = [line.split() for line in job.lines]
    return job, {int(row[0]): row[1:] for row in rows}


def known(answer: Union[Answer, Absent]) -> Answer:
    assert not isinstance(answer, Absent), answer
    return answer


def check_values(job: pieglobalsfind.Job, printed: dict[int, list[str]]) -> None:
    for rank, (address, *values) in printed.items():
        assert job.owner(int(address, 16)).rank == rank
        assert known(job.symbol(int(address, 16))).name == "exported"
        grid = known(job.globals("grid")[rank]).text.strip("{}").split(", ")
        shown = [known(job.globals(name)[rank]).text for name in ("exported", "inner", "counted::calls")]
        assert [*shown[:2], grid[3], shown[2]] == values


def check_stacks(job: pieglobalsfind.Job, depth: int = 4) -> None:
    for rank in range(1, RANKS):
        functions = [frame.function for frame in job.stack(rank)]
        assert functions == ["MPI_Recv", *["deep"] * depth, "main"], rank


@pytest.mark.parametrize("method", WHOLE)
def test_values_and_stacks(aarch64: Aarch64, start_job: StartJob, method: str) -> None:
    running, printed = hold(aarch64, start_job, method)
    wait_until(lambda: all_wait(running.pid), running.stderr)
    with pieglobalsfind.open(pid=running.pid) as job:
        assert job.table().processor is AARCH64
        check_values(job, printed)
        check_stacks(job)


def all_wait(pid: int) -> bool:
    with pieglobalsfind.open(pid=pid) as job:
        return [rank.state for rank in job.ranks()][1:] == ["blocked"] * (RANKS - 1)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_signed_return_addresses(aarch64: Aarch64, start_job: StartJob, level: str) -> None:
    running, _ = hold(aarch64, start_job, "pie", "-mbranch-protection=standard", level)
    wait_until(lambda: all_wait(running.pid), running.stderr)
    with pieglobalsfind.open(pid=running.pid) as job:
        check_stacks(job)


def test_a_snapshot_is_read_like_the_process(aarch64: Aarch64, start_job: StartJob, tmp_path: Path) -> None:
    running, printed = hold(aarch64, start_job, "pie")
    wait_until(lambda: all_wait(running.pid), running.stderr)
    place = tmp_path / "kept"
    subprocess.run([built("inspector"), "snapshot", str(running.pid), "-o", place], check=True, timeout=200)
    running.close()
    with pieglobalsfind.open(snapshot=str(place)) as job:
        check_values(job, printed)
        check_stacks(job)


FORTRAN = ("state::counted", "shared", "state::called::calls", "state::weights")


@pytest.mark.parametrize("method", ["pie", "fs"])
def test_fortran(aarch64: Aarch64, start_job: StartJob, method: str) -> None:
    program = aarch64.built(method, source="program.f90")
    running = start_job(*aarch64.command(method, program, RANKS), "hold", environment=aarch64.environment)
    running.wait_for("2 205 3.5 14 42", timeout=200)
    assert sorted(running.lines) == ["0 5 1.5 0 40", "1 105 2.5 7 41", "2 205 3.5 14 42"]
    wait_until(lambda: all_wait(running.pid), running.stderr)
    with pieglobalsfind.open(pid=running.pid) as job:
        for rank in range(RANKS):
            counted, shared, calls, weights = (known(job.globals(name)[rank]).text for name in FORTRAN)
            assert (counted, shared, calls) == (str(5 + 100 * rank), str(7 * rank), str(40 + rank))
            assert re.findall(r"[\d.]+", weights) == ["1.5"] * 5 + [str(1.5 + rank)]
            if rank:
                assert [frame.function for frame in job.stack(rank)][:2] == ["mpi_recv_", "MAIN__"]
