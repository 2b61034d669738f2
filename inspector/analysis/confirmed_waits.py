"""Keep of the wait-for graph only the cycles and collectives whose ranks all waited at the same moment.

Takes the tables that were read and the jobs that they are from; gives what `wait_graph` finds in them, without what
holds only if no message was on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pieglobalsfind.decoders.communicators import Communicators
from pieglobalsfind.decoders.registry.live_state import read_again
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Rank, RankTable
from pieglobalsfind.mpi.call_from_stack import TIERS

from ..job.job import Job, ranks_at_home, running_process
from .quiescence import why_not_still
from .wait_graph import Waits, find

TELLS_MATCHES = ("SMPI",)  # runtimes whose requests tell whether the other side has come
NOT_AT_ONCE = "its processes were not read at one moment"


def waits_of(table: RankTable, members: Communicators, homes: Mapping[int, Job]) -> Waits:
    """The waits in a table whose peers are as published. `homes`: by rank, the process that describes it."""
    return confirmed(find(table, members), homes)


def unconfirmed(table: RankTable, members: Communicators, parts: Sequence[Waits] = ()) -> Waits:
    """The waits of processes that were read one after another, on several hosts.

    Nothing in them is sure but the cycles in `parts`, each of which was read at one moment: a deadlock does not end.
    """
    waits = find(table, members)
    sure = {cycle.ranks for part in parts for cycle in part.cycles}
    return replace(
        waits,
        cycles=tuple(cycle for cycle in waits.cycles if cycle.ranks in sure),
        unsure=tuple((cycle, NOT_AT_ONCE) for cycle in waits.cycles if cycle.ranks not in sure),
        standstill=(),
        collectives=tuple(replace(collective, needed=()) for collective in waits.collectives),
    )


def confirmed(waits: Waits, homes: Mapping[int, Job]) -> Waits:
    """Without what never was: tables of running processes, and ranks in them, are read one after the other.

    Who was not switched between his first reading and now waited at the moment between all firsts and all seconds.
    """
    first = dict(zip(homes, ranks_at_home(homes)))

    def all_wait(ranks: Iterable[int]) -> bool:
        return all(rank in homes and still_waits(homes[rank], first[rank]) for rank in ranks)

    cycles = tuple(cycle for cycle in waits.cycles if all_wait(cycle.witnesses))
    called = tuple(
        collective if all_wait(collective.inside) else replace(collective, needed=())
        for collective in waits.collectives
    )
    standstill = waits.standstill if all_wait(waits.standstill) else ()
    waits = replace(waits, cycles=cycles, collectives=called, standstill=standstill)
    return by_stillness(waits, homes)


def by_stillness(waits: Waits, homes: Mapping[int, Job]) -> Waits:
    """What was read from stacks holds only where no message can be on its way."""
    concerned = {rank for cycle in waits.cycles for rank in cycle.witnesses}
    concerned.update(waits.standstill, *(collective.inside for collective in waits.collectives))
    reasons: dict[int, str] = {}
    for job in {id(job): job for job in homes.values()}.values():
        is_published = job.table.evidence.tier not in TIERS or (
            job.table.runtime in TELLS_MATCHES and not job.target.is_live
        )
        unpublished = set() if is_published else {rank.rank for rank in job.table.ranks if homes.get(rank.rank) is job}
        reason = why_not_still(job, unpublished & concerned) if unpublished & concerned else ""
        reasons.update(dict.fromkeys(unpublished, reason) if reason else {})

    lacking = {rank for rank, _ in waits.unknown if homes[rank].table.runtime in TELLS_MATCHES}
    reasons.update(dict.fromkeys(lacking, "what they wait for is not known"))

    def why(ranks: Iterable[int]) -> str:
        return next((reasons[rank] for rank in ranks if rank in reasons), "")

    return replace(
        waits,
        cycles=tuple(cycle for cycle in waits.cycles if not why(cycle.witnesses)),
        unsure=tuple((cycle, why(cycle.witnesses)) for cycle in waits.cycles if why(cycle.witnesses)),
        standstill=() if why(waits.standstill) else waits.standstill,
        collectives=tuple(
            replace(collective, needed=()) if why(collective.inside) else collective for collective in waits.collectives
        ),
    )


def still_waits(job: Job, before: Rank) -> bool:
    """Also after a pause: a message may have been on its way while all stood still."""
    running = running_process(job.target)
    if running is None or not before.record:
        return True
    try:
        now = read_again(running, job.table, before)
    except RanklensError:
        return False
    return (now.state, now.waiting, now.switches) == (before.state, before.waiting, before.switches)
