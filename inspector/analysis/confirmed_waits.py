"""The wait-for graph of ranks that surely waited at one moment.

Takes the tables that were read and the jobs that they are from; gives what `wait_graph` finds in them, without what
holds only if no message was on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pieglobalsfind.decoders.communicators import Communicators
from pieglobalsfind.decoders.registry.live_state import read_again
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Rank, RankTable
from pieglobalsfind.mpi.call_from_stack import TIERS

from ..job.job import Job, running_process
from .quiescence import why_not_still
from .wait_graph import Waits, find

TELLS_MATCHES = ("SMPI",)  # runtimes whose requests tell whether the other side has come
NOT_AT_ONCE = "its processes were not read at one moment"


def waits_of(table: RankTable, members: Communicators, homes: Mapping[int, Job]) -> Waits:
    """The waits in a table whose peers are as published. `homes`: by rank, the process that tells of it."""
    return confirmed(find(table, members), homes)


def unconfirmed(table: RankTable, members: Communicators) -> Waits:
    """The waits of processes that were read one after another, on several hosts: nothing in them is sure."""
    found = find(table, members)
    return replace(
        found,
        cycles=(),
        unsure=tuple((one, NOT_AT_ONCE) for one in found.cycles),
        standstill=(),
        collectives=tuple(replace(one, needed=()) for one in found.collectives),
    )


def confirmed(found: Waits, homes: Mapping[int, Job]) -> Waits:
    """Without what never was: tables of running processes, and ranks in them, are read one after the other.

    Who was not switched between his first reading and now waited at the moment between all firsts and all seconds.
    """

    first = {id(job): {one.rank: one for one in job.table.ranks} for job in homes.values()}

    def all_wait(ranks: Iterable[int]) -> bool:
        return all(rank in homes and still_waits(homes[rank], first[id(homes[rank])][rank]) for rank in ranks)

    cycles = tuple(one for one in found.cycles if all_wait(one.witnesses))
    called = tuple(one if all_wait(one.inside) else replace(one, needed=()) for one in found.collectives)
    standstill = found.standstill if all_wait(found.standstill) else ()
    found = replace(found, cycles=cycles, collectives=called, standstill=standstill)
    return by_stillness(found, homes)


def by_stillness(found: Waits, homes: Mapping[int, Job]) -> Waits:
    """What was read from stacks holds only where no message can be on its way."""
    told = {rank for cycle in found.cycles for rank in cycle.witnesses}
    told.update(found.standstill, *(one.inside for one in found.collectives))
    reasons: dict[int, str] = {}
    for job in {id(job): job for job in homes.values()}.values():
        is_told = job.table.evidence.tier not in TIERS or (
            job.table.runtime in TELLS_MATCHES and not job.target.is_live
        )
        unpublished = set() if is_told else {one.rank for one in job.table.ranks if homes.get(one.rank) is job}
        reason = why_not_still(job, unpublished & told) if unpublished & told else ""
        reasons.update(dict.fromkeys(unpublished, reason) if reason else {})

    lacking = {rank for rank, _ in found.unknown if homes[rank].table.runtime in TELLS_MATCHES}
    reasons.update(dict.fromkeys(lacking, "what they wait for is not known"))

    def why(ranks: Iterable[int]) -> str:
        return next((reasons[rank] for rank in ranks if rank in reasons), "")

    return replace(
        found,
        cycles=tuple(one for one in found.cycles if not why(one.witnesses)),
        unsure=tuple((one, why(one.witnesses)) for one in found.cycles if why(one.witnesses)),
        standstill=() if why(found.standstill) else found.standstill,
        collectives=tuple(replace(one, needed=()) if why(one.inside) else one for one in found.collectives),
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
