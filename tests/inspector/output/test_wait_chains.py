"""Chains of waiting ranks, many in one line, against the plain list of which rank waits for which."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace

import pytest

from inspector.analysis.wait_graph import Cycle, Waits, find
from inspector.output.wait_chains import Chains, chains
from inspector.output.wait_picture import MOST_BOXES, MOST_SINGLE, WaitPicture, as_dot, drawing, picture
from pieglobalsfind.model import BLOCKED, RUNNING, Absent, Evidence, Rank, RankTable, Waiting

UNKNOWN = Absent("of no account here")
EVIDENCE = Evidence("registry", "made up")


def table_of(peers: Mapping[int, int], count: int, call: str = "MPI_Recv") -> RankTable:
    """Ranks that wait for the peers; those without one run."""
    ranks = tuple(
        Rank(
            rank=rank,
            state=BLOCKED if rank in peers else RUNNING,
            processing_element=0,
            kernel_thread=0,
            context=UNKNOWN,
            stack=UNKNOWN,
            heap=UNKNOWN,
            heap_used=UNKNOWN,
            range=UNKNOWN,
            waiting=Waiting(call, peers[rank], 1, 0) if rank in peers else None,
            switches=UNKNOWN,
            placements=(),
            evidence=EVIDENCE,
        )
        for rank in range(count)
    )
    return RankTable("pie", "test", count, (), ranks, EVIDENCE)


def read(peers: Mapping[int, int], count: int) -> tuple[RankTable, Waits, Chains]:
    table = table_of(peers, count)
    waits = find(table, {0: tuple(range(count))})
    return table, waits, chains(table, waits)


def test_a_pipeline_is_one_line_and_its_root_comes_first() -> None:
    _, _, found = read({rank: rank - 1 for rank in range(1, 64)}, 64)
    assert [link.text for link in found.links] == ["ranks 1-63 wait for rank r-1 in MPI_Recv"]
    assert [(root.ranks, root.state, root.waiters) for root in found.roots] == [((0,), RUNNING, 63)]


def test_cycles_come_first_of_all_and_then_what_is_near_the_root() -> None:
    peers = {13: 14, 14: 13, 15: 13, 16: 13, 17: 16, 1: 0, 2: 1}
    _, _, found = read(peers, 20)
    assert [link.text for link in found.links] == [
        "rank 13 waits for rank 14 in MPI_Recv",
        "rank 14 waits for rank 13 in MPI_Recv",
        "ranks 15-16 wait for rank 13 in MPI_Recv",
        "ranks 1-2,17 wait for rank r-1 in MPI_Recv",
    ]
    assert [(root.ranks, root.waiters) for root in found.roots] == [((0,), 2)]


@pytest.mark.parametrize("seed", range(20))
def test_every_wait_is_in_one_link_and_in_the_picture(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice((5, 20, 90))
    shapes = (lambda rank: 0, lambda rank: rank - 1, lambda rank: rank + 1, lambda rank: chance.randrange(count))
    shape = [chance.choice(shapes) for _ in range(count)]
    peers = {rank: shape[rank // 10](rank) % count for rank in range(count) if chance.random() < 0.8}
    table, waits, found = read(peers, count)
    linked = [(rank, link.peer_of(rank)) for link in found.links for rank in link.ranks]
    assert sorted(linked) == sorted(waits.peers.items()) == sorted(peers.items())
    in_cycle = {rank for link in found.links if link.is_cycle for rank in link.ranks}
    assert in_cycle == {rank for cycle in waits.cycles for rank in cycle.ranks}
    drawn = picture(table, waits, found)
    home = {rank: number for number, node in enumerate(drawn.nodes) for rank in node.ranks}
    assert {(edge.start, edge.end) for edge in drawn.edges} == {
        (home[rank], home[peer]) for rank, peer in peers.items()
    }
    assert sum(len(node.ranks) for node in drawn.nodes) == len(home)  # no rank is in two boxes
    check_levels(drawn)
    shown = drawing(drawn)
    assert len({(box.x, box.y) for box in shown.boxes}) == len(shown.boxes) <= MOST_BOXES
    assert all(0 <= box.x < shown.width and 0 <= box.y < shown.height for box in shown.boxes)


def check_levels(drawn: WaitPicture) -> None:
    """Whoever waits stands one column right of the nearest that it waits for."""
    for number, node in enumerate(drawn.nodes):
        ends = [drawn.nodes[edge.end].level for edge in drawn.edges if edge.start == number and edge.end != number]
        if node.kind == "waits" and ends:
            assert node.level == min(ends) + 1


def test_few_ranks_have_a_box_each_and_many_one_for_all_that_do_the_same() -> None:
    boxes = {}
    for count, step in ((MOST_SINGLE, 8), (1000, 8), (MOST_SINGLE, 1)):
        table, waits, found = read({rank: rank - step for rank in range(step, count)}, count)
        boxes[count, step] = [node.label for node in picture(table, waits, found).nodes]
    assert len(boxes[MOST_SINGLE, 8]) == MOST_SINGLE
    assert boxes[1000, 8] == ["ranks 8-999", "ranks 0-7"]
    assert boxes[MOST_SINGLE, 1] == [f"ranks 1-{MOST_SINGLE - 1}", "rank 0"]  # a chain too long to be drawn


@pytest.mark.parametrize("waiting", [0, MOST_SINGLE])
def test_a_cycle_through_a_collective_call_is_drawn(waiting: int) -> None:
    """Rank 0 waits there for all that have not come, so for no single one; others, few or many, wait for it."""
    peers = {3: 0, **dict.fromkeys(range(10, 10 + waiting), 0)}
    table = table_of(peers, 40)
    waits = replace(find(table, {0: tuple(range(40))}), cycles=(Cycle((0, 3), frozenset((0, 3))),))
    drawn = picture(table, waits, chains(table, waits))
    home = {rank: number for number, node in enumerate(drawn.nodes) for rank in node.ranks}
    assert {(edge.start, edge.end) for edge in drawn.edges} >= {(home[0], home[3]), (home[3], home[0])}
    assert {node.kind for node in drawn.nodes if {0, 3} & set(node.ranks)} == {"cycle"}
    assert sorted(rank for node in drawn.nodes for rank in node.ranks) == sorted({0, *peers})


def test_graphviz_takes_names_as_they_are() -> None:
    table = table_of({1: 0}, 2, 'MPI_"x"\\')
    waits = find(table, {0: (0, 1)})
    text = "\n".join(as_dot(picture(table, waits, chains(table, waits))))
    assert re.search(r'n1 \[label="rank 1\\nMPI_\\"x\\"\\\\", ', text) and "n1 -> n0;" in text
    dot = shutil.which("dot")
    if dot:
        done = subprocess.run([dot, "-Tplain"], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and len([line for line in done.stdout.splitlines() if line.startswith("node")]) == 2
