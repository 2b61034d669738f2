"""What a load balancer would do: which ranks it would move where, and how many bytes that would send.

Two strategies of the literature: `greedy` deals all ranks out again, the heaviest first, each to the element that has
least (longest processing time first); `refine` takes ranks from elements above the mean, and only as many as are
needed. Takes ranks' loads and places; moves nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from .loads import Place

TOLERANCE = 1.05  # times the mean that an element may have after `refine`


@dataclass(frozen=True)
class Task:
    """A rank: its load in seconds, where it is, and the bytes that a move to another process sends."""

    rank: int
    load: float
    place: Place
    size: int


@dataclass(frozen=True)
class Move:
    """A rank from one element to another; within a process nothing is sent."""

    rank: int
    origin: Place
    target: Place
    size: int


@dataclass(frozen=True)
class Proposal:
    """`before` and `after` are the heaviest element's load, `mean` that of all."""

    strategy: str
    before: float
    after: float
    mean: float
    moves: tuple[Move, ...]

    @property
    def size(self) -> int:
        """Return the bytes that the moves would send."""
        return sum(move.size for move in self.moves)


def propose(tasks: Sequence[Task], places: Sequence[Place]) -> tuple[Proposal, ...]:
    """What each strategy would do; nothing where there is one element only, or no load."""
    total = sum(task.load for task in tasks)
    if len(places) < 2 or total <= 0:
        return ()
    return tuple(_proposal(name, strategy(tasks, places), tasks, places) for name, strategy in STRATEGIES.items())


def _proposal(name: str, homes: Mapping[int, Place], tasks: Sequence[Task], places: Sequence[Place]) -> Proposal:
    now = {task.rank: task.place for task in tasks}
    moves = tuple(
        Move(task.rank, task.place, homes[task.rank], task.size if homes[task.rank][0] != task.place[0] else 0)
        for task in tasks
        if homes[task.rank] != task.place
    )
    mean = sum(task.load for task in tasks) / len(places)
    return Proposal(name, max(sums(tasks, now, places).values()), max(sums(tasks, homes, places).values()), mean, moves)


def sums(tasks: Sequence[Task], homes: Mapping[int, Place], places: Sequence[Place]) -> dict[Place, float]:
    """Each element's load if ranks were there."""
    loads = dict.fromkeys(places, 0.0)
    for task in tasks:
        loads[homes[task.rank]] = loads.get(homes[task.rank], 0.0) + task.load
    return loads


def greedy(tasks: Sequence[Task], places: Sequence[Place]) -> dict[int, Place]:
    """Each rank's place; of elements with equal loads a rank's own comes first."""
    loads = [(0.0, place) for place in sorted(places)]
    heapq.heapify(loads)
    homes: dict[int, Place] = {}
    for task in sorted(tasks, key=lambda task: (-task.load, task.rank)):
        least = loads[0][0]
        own = next((place for load, place in loads if load == least and place == task.place), None)
        if own is not None:
            loads.remove((least, own))
            heapq.heapify(loads)
            load, place = least, own
        else:
            load, place = heapq.heappop(loads)
        homes[task.rank] = place
        heapq.heappush(loads, (load + task.load, place))
    return homes


def refine(tasks: Sequence[Task], places: Sequence[Place]) -> dict[int, Place]:
    """Each rank's place: while an element has more than the mean allows, its rank whose move helps most goes to the
    element that has least."""
    homes = {task.rank: task.place for task in tasks}
    limit = TOLERANCE * sum(task.load for task in tasks) / len(places)
    loads = sums(tasks, homes, places)
    by_place: dict[Place, list[Task]] = {place: [] for place in loads}
    for task in tasks:
        by_place[task.place].append(task)
    for _ in tasks:  # a rank moves once at most
        heaviest = max(loads, key=lambda place: (loads[place], place))
        lightest = min(loads, key=lambda place: (loads[place], place))
        best = _best(by_place[heaviest], homes, heaviest, loads[heaviest], loads[lightest])
        if loads[heaviest] <= limit or best is None:
            break
        homes[best.rank] = lightest
        loads[heaviest] -= best.load
        loads[lightest] += best.load
    return homes


def _best(
    tasks: Sequence[Task], homes: Mapping[int, Place], place: Place, heavy: float, light: float
) -> Optional[Task]:
    """The rank whose move makes the larger of two elements smallest; None if none makes it smaller."""
    candidates = [task for task in tasks if homes[task.rank] == place and 0 < task.load < heavy - light]
    return min(candidates, key=lambda task: (max(heavy - task.load, light + task.load), task.rank), default=None)


STRATEGIES: Mapping[str, Callable[[Sequence[Task], Sequence[Place]], dict[int, Place]]] = {
    "greedy": greedy,
    "refine": refine,
}


def as_json(proposals: Sequence[Proposal]) -> list[dict[str, object]]:
    """Proposals as `schemas/load.json` has them."""
    return [
        {
            "strategy": proposal.strategy,
            "before": round(proposal.before, 6),
            "after": round(proposal.after, 6),
            "mean": round(proposal.mean, 6),
            "bytes": proposal.size,
            "moves": [
                {
                    "rank": move.rank,
                    "from": {"process": move.origin[0], "element": move.origin[1]},
                    "to": {"process": move.target[0], "element": move.target[1]},
                    "bytes": move.size,
                }
                for move in proposal.moves
            ],
        }
        for proposal in proposals
    ]
