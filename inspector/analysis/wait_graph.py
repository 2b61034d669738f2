"""Which rank waits for which: the wait-for graph of one moment, its cycles, and ranks that collectives lack.

Takes a rank table and the members of its communicators; gives values. It reads no target, and guesses nothing: a
receive from any rank waits for no rank in particular, and where members are not known no rank is waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Optional

from pieglobalsfind.decoders.communicators import Communicators, peer_of
from pieglobalsfind.model import BLOCKED, EXITED, MIGRATED_OUT, READY, Rank, RankTable

COLLECTIVES = (
    "MPIX_Migrate",
    "MPI_Allgather",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Cart_",
    "MPI_Comm_",
    "MPI_Exscan",
    "MPI_Finalize",
    "MPI_Gather",
    "MPI_Init",
    "MPI_Reduce",
    "MPI_Scan",
    "MPI_Scatter",
)
# no rank leaves these before every member has come: each needs something of all
ALL_FOR_ALL = (
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Barrier",
    "MPI_Comm_split",
    "MPI_Finalize",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
)
ALONE = ("MPIX_Migrate_to",)
ANY = -1  # Waiting.peer
Graph = Mapping[int, tuple[int, ...]]  # ranks, and as -1, -2, ... collective calls


@dataclass(frozen=True)
class Collective:
    """A collective call that some ranks are in, and those of its members that are not.

    Where `members` are not known, `lacking` are all ranks that are not in it. `exited` of these never come. `needed` of
    these have surely not come: a rank inside needs a message of theirs next, or it is `of_all` and all inside are
    blocked. Others may have come and left.
    """

    call: str
    communicator: int
    members: Optional[tuple[int, ...]]
    inside: tuple[int, ...]
    lacking: tuple[int, ...]
    exited: tuple[int, ...]
    needed: tuple[int, ...]

    @property
    def of_all(self) -> bool:
        """Whether no rank leaves it before all have come: each needs something of every other."""
        return self.call in ALL_FOR_ALL


@dataclass(frozen=True)
class Cycle:
    """Ranks each of which waits for the next, and the last for the first; that is so while all `witnesses` wait."""

    ranks: tuple[int, ...]
    witnesses: frozenset[int]


@dataclass(frozen=True)
class Waits:
    """`peers`: a waiting rank and the rank, or the first of several, without which it can't go on.

    In a collective that is the rank whose message it needs next. `cycles` never end by themselves. `untold`: ranks that
    wait for a member of an unreadable communicator. `standstill`: the job's ranks that have not exited, if
    every one of them is blocked.
    `unknown`: ranks with an argument of their call unknown, and why. `unsure`: cycles
    if no message is on its way, and why that is not known. `members` are of the communicators that are known.
    """

    peers: dict[int, int]
    cycles: tuple[Cycle, ...]
    collectives: tuple[Collective, ...]
    of_any: tuple[int, ...]
    untold: tuple[int, ...]
    standstill: tuple[int, ...]
    unknown: tuple[tuple[int, str], ...] = ()
    members: Communicators = field(default_factory=dict)
    unsure: tuple[tuple[Cycle, str], ...] = ()


def _is_collective(call: str) -> bool:
    return call.startswith(COLLECTIVES) and call not in ALONE


def find(table: RankTable, members: Communicators) -> Waits:
    """The wait-for graph of one moment. A ready rank has got what it waited for, and waits for no rank any more."""
    waiting = [rank for rank in table.ranks if rank.waiting is not None and rank.state not in (EXITED, MIGRATED_OUT)]
    needy = [(rank.rank, rank.waiting) for rank in waiting if rank.waiting and rank.state != READY]
    named = {rank: peer_of(wait, members) for rank, wait in needy if wait.peer >= 0 and not wait.needs_one}
    peers = {rank: peer for rank, peer in named.items() if peer is not None}
    others = {rank: tuple(each.peer for each in wait.others if each.peer >= 0) for rank, wait in needy}
    called = tuple(collectives(waiting, table, members, peers))
    return Waits(
        peers,
        tuple(cycles(table, {rank: (peer, *others[rank]) for rank, peer in peers.items()}, called)),
        called,
        tuple(
            rank for rank, wait in needy if wait.peer == ANY and not wait.needs_one and not _is_collective(wait.call)
        ),
        tuple(rank for rank, peer in named.items() if peer is None),
        standstill(table),
        tuple((rank.rank, rank.waiting.unknown) for rank in waiting if rank.waiting and rank.waiting.unknown),
        members,
    )


def standstill(table: RankTable) -> tuple[int, ...]:
    """All of the job's ranks that have not exited, if all are known and blocked; else none."""
    living = [rank for rank in table.ranks if rank.state != EXITED]
    if len(table.ranks) < table.rank_count or any(rank.state != BLOCKED for rank in living):
        return ()
    return tuple(rank.rank for rank in living)


def collectives(
    waiting: list[Rank], table: RankTable, members: Communicators, peers: Mapping[int, int]
) -> Iterator[Collective]:
    """Ranks in one collective of one communicator together; lacking are those that are in no such call.

    As long as one inside is ready, a call that needs something of all may be over, and others may have left it.
    """
    calls: dict[tuple[str, int], list[int]] = {}
    for rank in waiting:
        if rank.waiting is not None and _is_collective(rank.waiting.call):
            calls.setdefault((rank.waiting.call, rank.waiting.communicator), []).append(rank.rank)
    here = {rank.rank: rank.state for rank in table.ranks if rank.state != MIGRATED_OUT}
    for (call, communicator), ranks in calls.items():
        group = members.get(communicator)
        outside = sorted(here.keys() & group if group is not None else (rank for rank in here if here[rank] != EXITED))
        inside = set(ranks)
        lacking = tuple(rank for rank in outside if rank not in inside)
        exited = tuple(rank for rank in lacking if here[rank] == EXITED)
        needed = tuple(sorted({peers[rank] for rank in ranks if rank in peers} - inside))
        collective = Collective(call, communicator, group, tuple(ranks), lacking, exited, needed)
        is_open = collective.of_all and all(here[rank] == BLOCKED for rank in ranks)
        yield replace(collective, needed=lacking) if is_open else collective


def cycles(table: RankTable, peers: Graph, called: tuple[Collective, ...]) -> Iterator[Cycle]:
    """A cycle of each set of ranks that wait for one another, from the lowest of these on.

    As long as a rank in a collective is ready, it may let the others go on. In a call that needs something of all, a
    rank waits for each that is not in it; in others for its peer alone.
    """
    blocked = {rank.rank for rank in table.ranks if rank.state == BLOCKED}
    graph: dict[int, tuple[int, ...]] = {rank: peers_of for rank, peers_of in peers.items() if rank in blocked}
    for number, collective in enumerate(called, 1):
        whole = collective.members is not None and len(collective.members) == len(collective.inside) + len(
            collective.lacking
        )
        if collective.of_all and whole and blocked.issuperset(collective.inside):
            graph[-number] = collective.lacking
            graph.update(dict.fromkeys(collective.inside, (-number,)))
    for together in components(graph):
        ring = shortest_ring(graph, min(node for node in together if node >= 0), together)
        inside = (called[-node - 1].inside for node in ring if node < 0)
        ranks = tuple(node for node in ring if node >= 0)
        yield Cycle(ranks, frozenset(ranks).union(*inside))


def components(graph: Graph) -> list[frozenset[int]]:
    """Sets of those that reach one another, in the order of their lowest ranks (Tarjan 1972, without recursion)."""
    low: dict[int, int] = {}
    path: list[int] = []  # of those whose set is not known yet
    depth: dict[int, int] = {}
    sets: list[frozenset[int]] = []
    for root in graph:
        work = [] if root in low else [(root, iter(graph[root]))]
        while work:
            node, left = work[-1]
            if node not in low:
                low[node] = depth[node] = len(low)
                path.append(node)
            following = next((node for node in left if node in graph and (node not in low or node in depth)), None)
            if following is None:
                work.pop()
                if low[node] == depth[node]:
                    sets.append(frozenset(taken_from(path, node)))
                    for member in sets[-1]:
                        del depth[member]
                elif work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
            elif following in low:
                low[node] = min(low[node], depth[following])
            else:
                work.append((following, iter(graph[following])))
    rings = (component for component in sets if len(component) > 1 or component.issubset(graph[min(component)]))
    return sorted(rings, key=lambda ring: min(rank for rank in ring if rank >= 0))


def taken_from(path: list[int], node: int) -> Iterator[int]:
    """The end of a path, from a node on."""
    while path[-1] != node:
        yield path.pop()
    yield path.pop()


def shortest_ring(graph: Graph, start: int, together: frozenset[int]) -> list[int]:
    """From `start` back to it, within a set of those that reach one another; `start` stands first alone."""
    before: dict[int, int] = {}
    left = deque([start])
    while start not in before:
        node = left.popleft()
        for following in graph[node]:
            if following in together and following not in before:
                before[following] = node
                left.append(following)
    ring = [before[start]]
    while ring[-1] != start:
        ring.append(before[ring[-1]])
    return ring[::-1]
