"""Group ranks that wait in the same way, so that one line shows the waits of many.

Takes a rank table and its waits; gives links, roots first. Ranks in a cycle are the roots of what waits for them, and
come first of all. It reads no target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Union

from pieglobalsfind.model import EXITED, RankTable
from pieglobalsfind.ranks.rankset import compact

from ..analysis.wait_graph import Waits

FEWEST = 3  # ranks whose peers lie at one distance; fewer are named by their peers
NOT_IN_CALL = ""  # in place of a call: the rank is in none


@dataclass(frozen=True)
class Link:
    """`ranks` wait in `call` for rank `peer`, or, where that is None, each for the rank `distance` from its own.

    `is_cycle`: they are part of a deadlock. `depth` is how many ranks at most stand between these and the root.
    """

    ranks: tuple[int, ...]
    call: str
    peer: Union[int, None]
    distance: int
    is_cycle: bool
    depth: int

    def peer_of(self, rank: int) -> int:
        """Return the rank that a rank of the link waits for."""
        return self.peer if self.peer is not None else rank + self.distance

    @property
    def text(self) -> str:
        """`ranks 1-63 wait for rank r-1 in MPI_Waitall`, `rank 3 waits for rank 0 in MPI_Recv`."""
        is_single = len(self.ranks) == 1
        where = f"r{self.distance:+d}" if self.peer is None else str(self.peer)
        call = f" in {self.call}" if self.call else ""
        plural, ending = ("", "s") if is_single else ("s", "")
        return f"rank{plural} {compact(self.ranks)} wait{ending} for rank {where}{call}"


@dataclass(frozen=True)
class ChainRoot:
    """Ranks for which others wait, and that wait for no single rank themselves: what they do says why.

    `waiters` is how many wait for them in the end.
    """

    ranks: tuple[int, ...]
    state: str
    call: str
    waiters: int


@dataclass(frozen=True)
class Chains:
    """`links` of cycles first, then from the roots outwards; `roots`, those with most waiters first."""

    links: tuple[Link, ...]
    roots: tuple[ChainRoot, ...]


def chains(table: RankTable, waits: Waits) -> Chains:
    """Every rank that waits for one rank is in exactly one link."""
    calls = {rank.rank: rank.waiting.call if rank.waiting else NOT_IN_CALL for rank in table.ranks}
    cycle = {rank for cycle in waits.cycles for rank in cycle.ranks}
    ends = _ends(waits.peers, cycle)
    links: list[Link] = []
    for is_cycle in (True, False):
        ranks = [rank for rank in sorted(waits.peers) if (rank in cycle) is is_cycle]
        for call in sorted({calls[rank] for rank in ranks}):
            links += _links([rank for rank in ranks if calls[rank] == call], waits.peers, call, is_cycle, ends)
    links.sort(key=lambda link: (not link.is_cycle, link.depth, -len(link.ranks), link.ranks))
    return Chains(tuple(links), tuple(_roots(table, waits, calls, {rank: end for rank, (end, _) in ends.items()})))


def _ends(peers: Mapping[int, int], cycle: set[int]) -> dict[int, tuple[int, int]]:
    """By rank, the end of its chain (in a cycle, or a rank that waits for no single rank), and the steps to it."""
    ends = {rank: (rank, 0) for rank in cycle}
    for rank in peers:
        path: dict[int, None] = {}
        while rank in peers and rank not in ends and rank not in path:
            path[rank] = None
            rank = peers[rank]
        end, steps = ends.get(rank, (rank, 0))
        for node in reversed(path):
            steps += 1
            ends[node] = end, steps
    return ends


def _links(
    ranks: Sequence[int], peers: Mapping[int, int], call: str, is_cycle: bool, ends: Mapping[int, tuple[int, int]]
) -> list[Link]:
    """Ranks of one call, the most first that wait for one rank or for ranks at one distance; each is in one link."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for rank in ranks:
        groups.setdefault((False, peers[rank]), []).append(rank)
        groups.setdefault((True, peers[rank] - rank), []).append(rank)
    queue = [
        (-len(ranks_alike), *key, ranks_alike[0]) for key, ranks_alike in groups.items()
    ]  # of as many, those of one peer first
    heapify(queue)
    left = set(ranks)
    links: list[Link] = []
    while left:
        size, is_distance, key, _ = heappop(queue)
        together = [rank for rank in groups[is_distance, key] if rank in left]
        if len(together) < -size:  # others have taken some: it has to wait for its turn
            if together:
                heappush(queue, (-len(together), is_distance, key, together[0]))
        elif not is_distance or len(together) >= FEWEST:
            left.difference_update(together)
            depth = max(ends[rank][1] for rank in together)
            peer, distance = (None, key) if is_distance else (key, 0)
            links.append(Link(tuple(together), call, peer, distance, is_cycle, depth))
    return links


def _roots(table: RankTable, waits: Waits, calls: Mapping[int, str], ends: Mapping[int, int]) -> Iterable[ChainRoot]:
    """Where chains end but in cycles; ranks that do the same stand together."""
    states = {rank.rank: rank.state for rank in table.ranks}
    waiters: dict[int, int] = {}
    for rank, end in ends.items():
        if end != rank and end not in waits.peers and rank in waits.peers:
            waiters[end] = waiters.get(end, 0) + 1
    groups: dict[tuple[str, str], list[int]] = {}
    for rank in sorted(waiters):
        state = states.get(rank, "")
        groups.setdefault((state, "" if state == EXITED else calls.get(rank, "")), []).append(rank)
    chain_roots = [
        ChainRoot(tuple(ranks), state, call, sum(waiters[rank] for rank in ranks))
        for (state, call), ranks in groups.items()
    ]
    return sorted(chain_roots, key=lambda root: (-root.waiters, root.ranks))
