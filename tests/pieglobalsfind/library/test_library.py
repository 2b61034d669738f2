"""`import pieglobalsfind`: live, from a core file and from a snapshot it gives what the program's source says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pieglobalsfind
from pieglobalsfind import Absent, RanklensError, Stack, Value
from tests.support.places import gcore
from tests.support.running import Job, StartJob

RING = Path(__file__).parent / "ring.c"
FRAMES = ["MPI_Recv", "exchange", "main"]


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(RING.read_text().splitlines(), 1) if text in line)


def live(job: Job, folder: Path) -> pieglobalsfind.Job:
    return pieglobalsfind.open(pid=job.pid)


def held_still(job: Job, folder: Path) -> pieglobalsfind.Job:
    return pieglobalsfind.open(pid=job.pid, pause="throughout")


def unpaused(job: Job, folder: Path) -> pieglobalsfind.Job:
    return pieglobalsfind.open(pid=job.pid, pause="never")


def core(job: Job, folder: Path) -> pieglobalsfind.Job:
    return pieglobalsfind.open(core=str(gcore(job, folder)))


def snapshot(job: Job, folder: Path) -> pieglobalsfind.Job:
    from tests.support.running import built

    file = folder / "kept"
    subprocess.run([built("inspector"), "snapshot", str(job.pid), "-o", file], check=True, capture_output=True)
    return pieglobalsfind.open(snapshot=str(file))


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@pytest.mark.parametrize("opened", [live, held_still, unpaused, core, snapshot])
def test_every_target(held: Job, tmp_path: Path, opened: Callable[[Job, Path], pieglobalsfind.Job]) -> None:
    with opened(held, tmp_path) as job:
        ranks = job.ranks()
        assert [rank.rank for rank in ranks] == [0, 1, 2, 3] and {rank.state for rank in ranks} == {"blocked"}
        assert [rank.waiting.peer for rank in ranks if rank.waiting] == [1, 2, 3, 0]
        values = {number: job.globals(number) for number in ("my_rank", "load", "phase", "cell", "cells")}
        mine = [one for one in values["my_rank"].values() if isinstance(one, Value)]
        assert [(one.number, one.text, one.type, one.is_shared) for one in mine] == [
            (number, str(number), "int", False) for number in range(4)
        ]
        assert [str(one) for one in values["load"].values()] == [f"{{0, {number}.5, 0}}" for number in range(4)]
        assert {str(one) for one in values["phase"].values()} == {'"exchange"'}
        assert {str(one) for one in values["cell"].values()} == {"<cells+8>"}
        assert str(values["cells"][3]) == "{{row = 0, heat = 0}, {row = 30, heat = 0}}"
        for one in mine:
            owner, symbol = job.owner(one.address), job.symbol(one.address)
            assert (owner.rank, owner.kind) == (one.rank, "data")
            assert isinstance(symbol, pieglobalsfind.Symbol) and symbol.name == "my_rank"
        stacks = job.stacks()
        assert [[call.function for call in stack] for stack in stacks.values() if isinstance(stack, Stack)] == [
            FRAMES
        ] * 4
        stack = job.stack(1)
        assert stack.frames[1].line == line_of("MPI_Recv(&word") and stack.ends == ""
        whole = job.stack(1, runtime=True)
        assert [one.function for one in whole][-3:] == FRAMES and len(whole.frames) > len(FRAMES)
    with pytest.raises(pieglobalsfind.UsageError, match="is closed"):
        job.ranks()
    assert state(held.pid) in "SR"


def test_it_stands_still_throughout(held: Job) -> None:
    with pieglobalsfind.open(pid=held.pid, pause="throughout"):
        assert state(held.pid) == "t"
    assert state(held.pid) in "SR"


@pytest.mark.parametrize(
    ("ask", "kind", "sentence"),
    [
        (lambda job: job.stack(4), "UsageError", "there is no rank 4"),
        (lambda job: job.globals("no_such"), "UsageError", "no global variable is called 'no_such'"),
        (lambda job: job.globals("my_rank", "other.c"), "UsageError", "is called 'my_rank' in other.c"),
        (lambda job: pieglobalsfind.open(), "UsageError", "name one target"),
        (lambda job: pieglobalsfind.open(pid=1, core="x"), "UsageError", "name one target"),
        (lambda job: pieglobalsfind.open(pid=1, pause="often"), "UsageError", "'often' is not a kind of pause"),
        (lambda job: pieglobalsfind.open(core="/nowhere/core"), "TargetError", "no such file"),
        (lambda job: pieglobalsfind.open(pid=99999999, pause="throughout"), "TargetError", "there is no process"),
    ],
)
def test_errors_are_of_one_family(
    held: Job, ask: Callable[[pieglobalsfind.Job], object], kind: str, sentence: str
) -> None:
    with pieglobalsfind.open(pid=held.pid) as job, pytest.raises(RanklensError, match=sentence) as raised:
        ask(job)
    assert type(raised.value).__name__ == kind


def test_a_process_without_ranks(start_job: StartJob) -> None:
    process = start_job("/bin/sh", "-c", "echo ready; read line || sleep 1000")
    process.wait_for("ready")
    for pause in ("briefly", "throughout", "never"):
        with pytest.raises(pieglobalsfind.NotVirtualizedError, match="has no virtual ranks"):
            pieglobalsfind.open(pid=process.pid, pause=pause)
    assert state(process.pid) in "SR"


def test_variables_of_one_name(tmp_path: Path, rankcc: Path, rankrun: Path, start_job: StartJob) -> None:
    for number in (1, 2):
        (tmp_path / f"part{number}.c").write_text(
            f"static int twice = {number};\nint *at{number}(void) {{ return &twice; }}\n"
        )
    parts = [tmp_path / "part1.c", tmp_path / "part2.c", RING]
    subprocess.run([rankcc, "-g", *parts, "-o", tmp_path / "parts"], check=True, timeout=60)
    held = start_job(rankrun, "-n", 2, tmp_path / "parts")
    held.wait_until_still()
    with pieglobalsfind.open(pid=held.pid) as job:
        with pytest.raises(
            pieglobalsfind.UsageError, match=r"2 variables are called 'twice': .*part1.c:1, .*part2.c:1"
        ):
            job.globals("twice")
        assert [str(one) for one in job.globals("twice", "part2.c").values()] == ["2", "2"]


def test_what_can_not_be_had_says_why(held: Job, tmp_path: Path, ring: Path) -> None:
    file = gcore(held, tmp_path)
    ring.write_bytes(b"another")
    with pieglobalsfind.open(core=str(file)) as job:
        with pytest.raises(RanklensError, match="ring"):
            job.globals("my_rank")
        (stack, *_) = job.stacks().values()
        assert isinstance(stack, Absent) or "no unwind information" in stack.ends
