"""Events of the hook while ranks migrate between two processes: their order, and that memory is there on arrival.

Two GDBs record them, each in one process; data travel as between hosts (`+cma_disable`), so that a rank's memory comes
later than its thread. The ranks migrate three times each.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, PATIENCE, build, gated
from tests.support.debuggers import find_gdb
from tests.support.running import BIN, ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 6
TURNS = 3
PACK, ARRIVED, EXITED = 4, 5, 6  # rank_debug.h


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _wait_for(path: Path, key: str) -> None:
    wait_until(lambda: any(key in line for line in _lines(path)), f"no {key} in {path.name}")


@pytest.mark.parametrize("method", COPIES)
def test_events_come_in_order_and_with_their_memory(method: str, tmp_path: Path) -> None:
    build(tmp_path, method, "gated.c", with_hook=True)
    with gated(tmp_path, RANKS, "+cma_disable") as (_, processes):
        addresses = {rank: address for ranks in processes.values() for rank, address in ranks.items()}
        files = {pid: tmp_path / f"events.{pid}" for pid in processes}
        debuggers = []
        for pid, file in files.items():
            environment = dict(os.environ, EVENTS=str(file), ADDRESSES=json.dumps(addresses))
            command = [str(find_gdb()), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(pid)]
            command += ["-x", str(ROOT / "tests" / "support" / "charm" / "events.py")]
            with (tmp_path / f"gdb.{pid}").open("w") as output:
                debuggers.append(
                    subprocess.Popen(command, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
                )
        try:
            for file in files.values():
                _wait_for(file, "ready")
            Path(tmp_path, "go").touch()
            for file in files.values():
                _wait_for(file, "ended")
        finally:
            for debugger in debuggers:
                debugger.kill()
                debugger.wait()
        events = {pid: [line for line in _lines(file) if "kind" in line] for pid, file in files.items()}
    moves: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pid, told in events.items():
        here = set(processes[pid])
        for one in told:
            rank = one["rank"]
            moves[rank].append((pid, one["kind"]))
            if one["kind"] == PACK:
                assert rank in here
                here.remove(rank)
                assert one["value"] == rank  # still whole
            elif one["kind"] == ARRIVED:
                assert rank not in here
                here.add(rank)
                assert one["value"] == rank  # with its memory
            else:
                assert (one["kind"], rank in here, one["value"]) == (EXITED, True, rank)
    assert sorted(moves) == list(range(RANKS))
    for told_of_rank in moves.values():
        kinds = [kind for _, kind in told_of_rank]
        assert (kinds.count(PACK), kinds.count(ARRIVED)) == (TURNS, TURNS)
        assert kinds.count(EXITED) == 1


@pytest.mark.parametrize("method", COPIES)
def test_the_inspector_tells_of_migrations(method: str, tmp_path: Path) -> None:
    """The oracle is the program, which prints by turn in which process each rank is."""
    build(tmp_path, method, "gated.c", with_hook=True)
    with gated(tmp_path, RANKS) as (process, processes):
        command = [str(BIN / "inspector"), "events", str(next(iter(processes))), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as events:
            assert events.stdout is not None and process.stdout is not None
            first = json.loads(events.stdout.readline())
            assert {one["pid"] for one in first["processes"]} == set(processes)
            Path(tmp_path, "go").touch()
            printed = process.stdout.read()
            output, errors = events.communicate(timeout=PATIENCE)
    assert (events.returncode, errors) == (0, "")
    index = {one["pid"]: one["process"] for one in first["processes"]}
    places: dict[int, list[int]] = {rank: [index[pid]] for pid, ranks in processes.items() for rank in ranks}
    for _, rank, pid in sorted(map(tuple, re.findall(r"TURN (\d+) rank (\d+) in (\d+)", printed))):
        places[int(rank)].append(index[int(pid)])
    told: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for one in map(json.loads, output.splitlines()):
        if one.get("rank", -1) >= 0:
            told[one["rank"]].append((one["event"], one["process"]))
    for rank, where in places.items():
        moves = [
            (what, at)
            for before, after in zip(where, where[1:])
            for what, at in (("leaves", before), ("arrived", after))
        ]
        assert told[rank] == [("created", where[0]), *moves, ("exited", where[-1])]
