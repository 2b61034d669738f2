"""Deadlocks through collective calls, in communicators that number their ranks in another order: real ones."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest

from inspector.analysis.wait_graph import find
from inspector.commands.waits import collective
from pieglobalsfind.decoders import communicators, decode
from pieglobalsfind.model import READY, RankTable
from pieglobalsfind.targets import open_target
from tests.support.debuggers import find_lldb
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, ROOT, Job

RANKS = 12
MEMBERS_AT = 124  # in a rank's record: how many, and where they are


def inspect(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "inspector"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def halves(start_ranks: StartRanks) -> Job:
    return start_ranks(SOURCES / "halves.c", ranks=RANKS)


def test_deadlocks_through_collectives(halves: Job, tmp_path: Path) -> None:
    """Peers are told as ranks of MPI_COMM_WORLD, and only those are lacking that belong to the communicator."""
    done = inspect("waits", halves.pid, "--json")
    found = json.loads(done.stdout)
    peers = {one["rank"]: one["for"] for one in found["waits"]}
    received = {3: 0, 6: 5, 11: 10}
    assert peers == {**received, 0: 2, 1: 3, 2: 3, 4: 5, 5: 7, 8: 9, 10: 11}
    assert (found["cycles"], found["any"], found["untold"]) == ([[0, 3], [5, 6], [10, 11]], "7", "")
    assert [
        (one["call"], one["members"], one["inside"], one["lacking"], one["exited"]) for one in found["collectives"]
    ] == [
        ("MPI_Barrier", "0-3", "0-2", "3", ""),
        ("MPI_Allreduce", "4-7", "4-5", "6-7", ""),
        ("MPI_Barrier", "8-9", "8", "9", "9"),
        ("MPI_Bcast", "10-11", "10", "11", ""),
    ]
    said = inspect("waits", halves.pid).stdout
    for line in (
        "3\tMPI_Recv from 0, tag 7",
        "deadlock: ranks 0,3 wait for one another, 0 -> 3 -> 0",
        "deadlock: ranks 5-6 wait for one another, 5 -> 6 -> 5",
        "MPI_Barrier: entered by 0-2; missing: 3\n",
        "MPI_Barrier: entered by 8; missing: 9 (9 has exited)\n",
        "MPI_Bcast: entered by 10; missing: 11\n",
    ):
        assert line in said
    ranks = json.loads(inspect("ranks", halves.pid, "--json").stdout)["ranks"]
    said_of = {
        rank["rank"]: rank["waiting"]["peer"] for rank in ranks if rank["waiting"] and rank["waiting"]["peer"] >= 0
    }
    assert said_of == peers
    kept = tmp_path / "kept"
    assert inspect("snapshot", halves.pid, "-o", kept, "--memory", "none").returncode == 0
    again = json.loads(inspect("waits", kept, "--json").stdout)
    assert all(again[part] == found[part] for part in ("waits", "cycles", "collectives", "standstill"))


def test_deadlock_through_calls_that_need_one_of_several_requests(start_ranks: StartRanks) -> None:
    """What all requests have in common is told: the rank, and the tag if there is one."""
    job = start_ranks(SOURCES / "one_of.c", ranks=3)
    found = json.loads(inspect("waits", job.pid, "--json").stdout)
    assert {one["rank"]: one["for"] for one in found["waits"]} == {0: 1, 1: 0}
    assert (found["cycles"], found["any"]) == ([[0, 1]], "2")
    said = inspect("waits", job.pid).stdout
    assert "0\tMPI_Waitany from 1, any tag\n" in said and "1\tMPI_Waitsome from 0, tag 3\n" in said


def test_debuggers_name_the_same_peers(halves: Job, gdb: Path, tmp_path: Path) -> None:
    """As ranks of MPI_COMM_WORLD: in their communicator, which has the opposite order, 0 is 3 and 5 is 2."""
    attach = {
        str(gdb): ["-nx", "-q", "-batch", "-p", halves.pid, "-ex", f"source {ROOT / 'gdbext' / 'rank.py'}", "-ex"],
        str(find_lldb()): ["-x", "-b", "-p", halves.pid, "-o", f"command script import {ROOT / 'lldbext'}", "-o"],
    }
    for tool, words in attach.items():
        command = [tool, *map(str, words), "rank list 3,6-7,10-11"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(tmp_path)},  # where the next LLDB would remove what this one leaves
        )
        said = done.stdout
        waits = dict(re.findall(r"^ +(\d+) +blocked .*?(MPI_\w+(?: from [\w ]+, tag \d+)?) ", said, re.MULTILINE))
        assert waits == {
            "3": "MPI_Recv from 0, tag 7",
            "6": "MPI_Recv from 5, tag 7",
            "7": "MPI_Recv from any rank, tag 7",
            "10": "MPI_Bcast",
            "11": "MPI_Recv from 10, tag 7",
        }, said


def test_deadlocks_through_calls_that_ranks_may_leave_early(start_ranks: StartRanks) -> None:
    """Whom each rank waits for is who has its message: a broadcast's comes by a tree, a sum's goes through one.

    Those who have given their own and left are not waited for, though they are lacking and wait for who is in it.
    """
    job = start_ranks(SOURCES / "rooted.c", ranks=19)
    found = json.loads(inspect("waits", job.pid, "--json").stdout)
    gather, like_it = {0: 2, 1: 2, 2: 1}, {4: 5, 5: 3}
    reduced, sent = {9: 10, 10: 9, 11: 12, 12: 10}, {13: 14, 14: 13}
    assert {one["rank"]: one["for"] for one in found["waits"]} == {
        **gather,
        **like_it,
        6: 7,
        7: 8,
        8: 6,
        **reduced,
        **sent,
        17: 18,
        18: 17,
    }
    assert found["cycles"] == [[1, 2], [6, 7, 8], [9, 10], [13, 14], [17, 18]]
    assert [(one["call"], one["inside"], one["lacking"], one["needed"]) for one in found["collectives"]] == [
        ("MPI_Gather", "2", "0-1", "1"),
        ("MPI_Gather", "5", "3-4", "3"),
        ("MPI_Scan", "6-7", "8", "8"),
        ("MPI_Reduce", "10-12", "9", "9"),
        ("MPI_Bcast", "13", "14-16", "14"),
        ("MPI_Scatter", "17", "18", "18"),
    ]
    said = inspect("waits", job.pid).stdout
    assert "MPI_Bcast: entered by 13; missing: 14; 15-16 are not in it, or have left it\n" in said


@pytest.mark.parametrize("options", [("--procs", 2), ("--method", "pipprocess"), ("--method", "tpsl")])
def test_a_barrier_of_all_that_one_rank_never_enters(start_ranks: StartRanks, options: tuple[object, ...]) -> None:
    """Whatever processes the ranks are in."""
    job = start_ranks(SOURCES / "halves.c", *options, ranks=6)
    found = json.loads(inspect("waits", "--job", job.pid, "--json").stdout)
    assert found["cycles"] == [[0, 5]] and {"rank": 0, "for": 5} in found["waits"]
    (barrier,) = found["collectives"]
    assert (barrier["members"], barrier["inside"], barrier["lacking"]) == ("0-5", "1-5", "0")


def table_of(job: Job) -> RankTable:
    table = decode(open_target(pid=job.pid))
    assert table is not None
    return table


def test_whoever_is_in_it_and_ready_may_let_the_others_go_on(halves: Job) -> None:
    """A barrier may be over for some: those who are ready have only not left it yet, and will tell the others.

    0 needs word of 2, which needs it of 3: what 1 does changes nothing for these.
    """
    table = table_of(halves)
    known = communicators.communicators(open_target(pid=halves.pid), table)
    assert [cycle.ranks for cycle in find(table, known).cycles] == [(0, 3), (5, 6), (10, 11)]
    for ready, ring, needed, said in (
        (set(), [(0, 3)], (3,), "; missing: 3"),
        ({1}, [(0, 2, 3)], (3,), "; missing: 3"),  # 2 still needs its message
        ({2}, [], (3,), "; missing: 3"),  # and so does 1
        ({1, 2}, [], (), "; 3 is not in it, or has left it"),
    ):
        ranks = [replace(rank, state=READY) if rank.rank in ready else rank for rank in table.ranks]
        waits = find(replace(table, ranks=ranks), known)
        assert [cycle.ranks for cycle in waits.cycles] == [*ring, (5, 6), (10, 11)]
        assert ready.isdisjoint(waits.peers) and waits.collectives[0].needed == needed
        assert collective(waits.collectives[0]) == f"MPI_Barrier: entered by 0-2{said}"


class Changed:
    """A target in which some ranks' records say something else of their communicator's members, or its memory does."""

    is_live = True

    def __init__(self, target: Any, records: set[int], told: Optional[tuple[int, int]], members: bytes) -> None:
        self._target, self._records, self._told, self._members = target, records, told, members
        self._at = {struct.unpack("<Q", target.read(record + MEMBERS_AT + 4, 8))[0] for record in records}

    def read(self, address: int, size: int) -> bytes:
        if address in self._at and self._members:
            return self._members
        content: bytes = self._target.read(address, size)
        if address not in self._records or self._told is None:
            return content
        return content[:MEMBERS_AT] + struct.pack("<IQ", *self._told) + content[MEMBERS_AT + 12 :]


def test_members_that_make_no_sense_are_not_believed(halves: Job) -> None:
    """Whom a rank waits for is not guessed then; of other communicators it is known."""
    table, target = table_of(halves), open_target(pid=halves.pid)
    lost, *_, same = (
        rank.waiting.communicator for rank in table.ranks if rank.waiting is not None and rank.rank in (0, 3)
    )
    records = {rank.record for rank in table.ranks if rank.rank < 4}
    whole = communicators.communicators(target, table)
    assert lost == same and whole[lost] == (3, 2, 1, 0) and len(whole) == 4
    numbers = [(0, 0), (4, 0), (4, (1 << 64) - 4), ((1 << 32) - 1, 0)]
    ranks = [(3, 3, 2, 1), (-1, 0, 1, 2), (RANKS, 0, 1, 2), (4, 5, 6, 7)]
    changed = [
        *(Changed(target, records, told, b"") for told in numbers),
        *(Changed(target, records, None, struct.pack("<4i", *told)) for told in ranks),
    ]
    for one in changed:
        known = communicators.communicators(one, table)  # type: ignore[arg-type]
        assert known == {number: members for number, members in whole.items() if number != lost}


def test_a_registry_of_an_earlier_writer(halves: Job) -> None:
    """Its records end before the members: it is readable, and says of nobody whom he waits for."""
    table = replace(table_of(halves), record_size=128)
    known = communicators.communicators(open_target(pid=halves.pid), table)
    waits = find(table, known)
    assert (known, waits.peers, waits.cycles, waits.untold) == ({}, {}, (), (0, 1, 2, 3, 4, 5, 6, 8, 10, 11))
    assert waits.standstill and waits.collectives[0].members is None
