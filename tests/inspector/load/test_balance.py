"""What balancers propose: against all other ways to place ranks, where these can be counted."""

from __future__ import annotations

import itertools
import random

import pytest

from inspector.load.balance import TOLERANCE, Task, propose, sums

PLACES = [(0, 0), (0, 1), (1, 0)]


def tasks(*loads: float, places: int = 3) -> list[Task]:
    """Ranks of those loads, dealt out in blocks, each of 100 bytes and its number."""
    return [Task(rank, load, PLACES[rank * places // len(loads)], 100 + rank) for rank, load in enumerate(loads)]


def best(found: list[Task]) -> float:
    """The least that the heaviest element can have."""
    return min(
        max(sums(found, {task.rank: place for task, place in zip(found, homes)}, PLACES).values())
        for homes in itertools.product(PLACES, repeat=len(found))
    )


@pytest.mark.parametrize("seed", range(20))
def test_near_the_best(seed: int) -> None:
    """Graham: longest processing time first is at most 4/3 - 1/(3m) times the best."""
    chance = random.Random(seed)
    found = tasks(*(chance.choice([0.0, chance.random(), chance.randrange(1, 9)]) for _ in range(7)))
    proposals = {proposal.strategy: proposal for proposal in propose(found, PLACES)}
    greedy, refine = proposals["greedy"], proposals["refine"]
    assert greedy.after <= (4 / 3 - 1 / 9) * best(found) + 1e-9
    assert refine.after <= refine.before
    for proposal in proposals.values():
        homes = {task.rank: task.place for task in found}
        homes.update({move.rank: move.target for move in proposal.moves})
        assert max(sums(found, homes, PLACES).values()) == pytest.approx(proposal.after)
        assert proposal.size == sum(100 + move.rank for move in proposal.moves if move.origin[0] != move.target[0])


def test_refine_stops_at_the_mean() -> None:
    """One rank goes, and no other moves."""
    (_, refine) = propose(tasks(1, 1, 1, 1, 1, 1, 1, 1, 1), PLACES)
    assert refine.moves == ()
    uneven = [Task(0, 2.0, (0, 0), 10), Task(1, 2.0, (0, 0), 10), Task(2, 2.0, (0, 1), 10)]
    (_, refine) = propose(uneven, PLACES)
    assert [(move.rank, move.target) for move in refine.moves] == [(0, (1, 0))]
    assert refine.after <= TOLERANCE * refine.mean and refine.size == 10


def test_greedy_keeps_ranks_where_it_can() -> None:
    (greedy, _) = propose(tasks(1, 1, 1), PLACES)
    assert greedy.moves == ()


def test_nothing_to_balance() -> None:
    assert propose(tasks(1, 2, places=1), [(0, 0)]) == ()
    assert propose(tasks(0, 0, 0), PLACES) == ()
