"""`inspector load` of programs that count their own time and messages, under each method and in several processes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.inspector.commands.test_schema import printed
from tests.methods.matrix import METHODS
from tests.support.inspector.ranks import SOURCES
from tests.support.running import BIN, Job, StartJob
from tests.support.sharing import Shared

RANKS = 4
LINE = re.compile(r"(busy|processor|sent) (\d+) (.*)")
MORE = 0.5  # seconds that a rank may run beyond what it counts: MPI, and what others take of a busy machine


@dataclass
class Own:
    """What the ranks count themselves: seconds by rank, and (messages, bytes) by sender and receiver."""

    busy: dict[int, float] = field(default_factory=dict)
    processor: dict[int, float] = field(default_factory=dict)
    sent: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


Start = Callable[..., tuple[Job, Own]]


@pytest.fixture
def start(tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, start_job: StartJob) -> Start:
    """Run load.c until all of its ranks wait."""

    def begin(
        *options: object, method: str = "pie", words: tuple[str, ...] = (), moves: bool = False
    ) -> tuple[Job, Own]:
        command = [rankcc, f"--method={method}", "-g", *(["-DMPIX_CAN_MOVE"] if moves else []), SOURCES / "load.c"]
        program = shared.copied(command, tmp_path / f"load.{method}.so")
        job = start_job(rankrun, "-n", RANKS, "--method", method, *options, program, *words)
        job.wait_for("ready")
        job.wait_until_still()
        return job, own_counts(job.lines)

    return begin


def own_counts(lines: list[str]) -> Own:
    own = Own()
    for kind, rank, rest in (match.groups() for match in map(LINE.match, lines) if match):
        if kind == "sent":
            receiver, messages, size = map(int, rest.split())
            own.sent[int(rank), receiver] = messages, size
        else:
            getattr(own, kind)[int(rank)] = float(rest)
    assert sorted(own.busy) == list(range(RANKS))
    return own


def check_messages(found: Any, own: Own) -> None:
    pairs = {(pair["from"], pair["to"]): (pair["messages"], pair["bytes"]) for pair in found["traffic"]}
    assert {pair: counts for pair, counts in pairs.items() if counts != (0, 0)} == own.sent


def check_times(found: Any, own: Own) -> None:
    """Each rank ran for as long as it counts, and elements' times add up."""
    busy = {rank["rank"]: rank["busy"] for rank in found["ranks"]}
    for rank, seconds in own.busy.items():
        assert seconds <= busy[rank] <= 1.2 * seconds + MORE, (rank, busy, own.busy)
    for element in found["elements"]:
        mine = [rank["busy"] for rank in found["ranks"] if (rank["process"], rank["element"]) == place_of(element)]
        assert sum(mine) + element["idle"] + element["undivided"] == pytest.approx(element["elapsed"], abs=0.01)


def place_of(element: Any) -> tuple[int, int]:
    return element["process"], element["element"]


@pytest.mark.parametrize("method", METHODS)
def test_each_method(start: Start, method: str) -> None:
    job, own = start(method=method)
    found = printed("load", job.pid, "--json")
    assert found["source"] == "counted"
    check_messages(found, own)
    check_times(found, own)


def test_processor_time_of_elements(start: Start) -> None:
    """As the kernel's clock of the thread says in the program, a little later."""
    job, own = start("--pes", 2)
    found = printed("load", job.pid, "--json")
    check_times(found, own)
    for element in found["elements"]:
        ranks = [rank["rank"] for rank in found["ranks"] if rank["element"] == element["element"]]
        latest = max(own.processor[rank] for rank in ranks)
        assert latest <= element["processor"] <= latest + MORE


def test_ranks_that_poll(start: Start) -> None:
    """Turns without a wait are not charged to either rank; --exact-load charges each."""
    job, own = start(words=("poll",))
    found = printed("load", job.pid, "--json")
    (element,) = found["elements"]
    assert element["undivided"] > 0 and "ranks that poll took turns" in found["notes"][0]
    assert sum(rank["busy"] for rank in found["ranks"]) + element["undivided"] >= sum(own.busy.values())
    exact, own = start("--exact-load", words=("poll",))
    found = printed("load", exact.pid, "--json")
    check_times(found, own)
    assert found["elements"][0]["undivided"] == 0 and not found["notes"]


def test_a_job_of_processes_that_ranks_move_between(start: Start) -> None:
    """What a rank did before it moved counts, too."""
    job, own = start("--procs", 2, words=("move",), moves=True)
    found = printed("load", "--job", job.pid, "--json")
    check_messages(found, own)
    busy = {rank["rank"]: rank["busy"] for rank in found["ranks"]}
    assert all(seconds <= busy[rank] <= 1.2 * seconds + MORE for rank, seconds in own.busy.items())
    assert {rank["rank"]: rank["process"] for rank in found["ranks"]} == {0: 0, 1: 1, 2: 1, 3: 1}
    greedy, refine = found["balance"]
    assert (greedy["strategy"], refine["strategy"]) == ("greedy", "refine")
    payload = {}
    for process in children(job.pid):
        payload.update({one["rank"]: total_of(one) for one in printed("payload", process, "--json")["payload"]})
    for proposal in found["balance"]:
        assert proposal["after"] <= proposal["before"]
        assert all(move["bytes"] == payload[move["rank"]] for move in proposal["moves"])


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def total_of(payload: Any) -> int:
    return int(payload["total"])


def test_what_a_period_adds(start: Start) -> None:
    job, _ = start()
    command = [BIN / "inspector", "load", str(job.pid), "--json", "--every", "50ms", "--duration", "100ms"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    periods = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(periods) >= 2
    for period in periods:  # all ranks wait
        assert all(rank["busy"] == 0 and rank["switches"] == 0 for rank in period["ranks"]) and period["traffic"] == []


def test_text(start: Start) -> None:
    """All ranks wait, so both forms have the same figures."""
    job, _ = start()
    done = subprocess.run([str(BIN / "inspector"), "load", str(job.pid)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = {line.split("\t")[0]: line.split("\t") for line in reversed(done.stdout.splitlines())}
    found = printed("load", job.pid, "--json")
    for rank in found["ranks"]:
        assert rows[str(rank["rank"])][2] == f"{rank['busy']:.3f}"
    slowest = max(found["ranks"], key=lambda rank: rank["busy"])
    assert any(
        line.startswith((f"rank {slowest['rank']} ran ", "no rank ran over ")) for line in done.stdout.splitlines()
    )
    assert rows["3"][-4:] == [str(6 + collectives(found, 3)), "24.0 KB", str(6 + collectives_to(found, 3)), "18.0 KB"]


def test_html(start: Start, tmp_path: Path) -> None:
    """The page has a row for each rank, with the same figures."""
    job, _ = start()
    file = tmp_path / "report.html"
    command = [BIN / "inspector", "report", str(job.pid), "--html", str(file)]
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=120)
    table = re.search(r'<table id="load">.*?</table>', file.read_text(), re.DOTALL)
    assert table is not None
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr><td.*?</tr>", table[0], re.DOTALL)]
    found = printed("load", job.pid, "--json")
    expected = [[str(rank["rank"]), f"{rank['busy']:.3f}"] for rank in found["ranks"]]
    assert [[row[0], row[2]] for row in rows] == expected


def collectives(found: Any, rank: int) -> int:
    return sum(pair["collective_messages"] for pair in found["traffic"] if pair["from"] == rank)


def collectives_to(found: Any, rank: int) -> int:
    return sum(pair["collective_messages"] for pair in found["traffic"] if pair["to"] == rank)


def test_a_core_file(start: Start, tmp_path: Path) -> None:
    """The counts are there; what passed after the last reading of the clock is not."""
    job, own = start()
    subprocess.run(["gcore", "-o", str(tmp_path / "core"), str(job.pid)], check=True, capture_output=True, timeout=120)
    found = printed("load", tmp_path / f"core.{job.pid}", "--json")
    check_messages(found, own)
    assert all(rank["busy"] >= own.busy[rank["rank"]] for rank in found["ranks"])
