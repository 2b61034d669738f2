"""Read the members of the communicators in which ranks wait, as ranks of MPI_COMM_WORLD.

Takes a target and its rank table; gives the members of each communicator that a waiting rank publishes, in their order
in it. What a rank publishes is an address and a count, written without a lock: of a running job they are believed only
if the rank was not switched meanwhile. A communicator of which no rank tells anything that makes sense is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Optional

from pieglobalsfind.decoders.mpi_constants import members_of_world
from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, REGISTRY, Rank, RankTable, Waiting
from pieglobalsfind.target import Target

Communicators = dict[int, tuple[int, ...]]

MOST_MEMBERS = 1 << 22  # of one communicator; ten times as many ranks as have ever been one job's
MOST_ATTEMPTS = 100  # ranks that are asked for one communicator: in a damaged registry no rank may know it
OF_WORLD = 0  # the communicator of a record that names none, as the ABI has it
ELEMENT = struct.calcsize("i")


def communicators(target: Target, table: RankTable) -> Communicators:
    """By their numbers: the members of those in which ranks wait."""
    if table.runtime == "SMPI":
        from pieglobalsfind.decoders.smpi.requests import Requests

        waited = {rank.waiting.communicator for rank in table.ranks if rank.waiting is not None}
        return Requests(target, table).members(waited - {0})
    members_of: Communicators = members_of_world(table)
    unnamed = (rank.waiting is not None and rank.waiting.communicator == OF_WORLD for rank in table.ranks)
    if table.evidence.tier == REGISTRY and any(unnamed):
        members_of[OF_WORLD] = tuple(range(table.rank_count))
    attempts: dict[int, int] = {}
    for rank, waiting in _waiting(table):
        number = waiting.communicator
        if (number in members_of and number != OF_WORLD) or attempts.get(number, 0) >= MOST_ATTEMPTS:
            continue
        attempts[number] = attempts.get(number, 0) + 1
        members = _members(target, table, rank)
        if members is not None:
            members_of[number] = members
    return members_of


def own_communicator(target: Target, table: RankTable, rank: Rank) -> Communicators:
    """The one in which a rank waits, as the rank itself publishes it: no other rank is read for it; else none."""
    waiting = rank.waiting
    if waiting is None or waiting.communicator == OF_WORLD or not rank.record or not _has_members(table):
        return {}
    members = _members(target, table, rank)
    return {} if members is None else {waiting.communicator: members}


def of_world(table: RankTable, members: Communicators) -> RankTable:
    """The table with peers as ranks of MPI_COMM_WORLD, where their communicator's members are known."""
    return replace(table, ranks=tuple(in_world(rank, members) for rank in table.ranks))


def in_world(rank: Rank, members: Communicators) -> Rank:
    """The rank with its peer as a rank of MPI_COMM_WORLD, if the communicator's members are known."""
    waiting = rank.waiting
    peer = peer_of(waiting, members) if waiting is not None else None
    if waiting is None or peer is None or waiting.in_world:
        return rank
    return replace(rank, waiting=replace(waiting, peer=peer, in_world=True))


def peer_of(waiting: Waiting, members: Communicators) -> Optional[int]:
    """The rank of MPI_COMM_WORLD that is waited for, None for none, any or an unknown one."""
    if waiting.in_world:
        return waiting.peer if waiting.peer >= 0 else None
    ranks = members.get(waiting.communicator, ())
    return ranks[waiting.peer] if 0 <= waiting.peer < len(ranks) else None


def places(target: Target, table: RankTable) -> Iterator[tuple[int, int]]:
    """(start, end) of the memory that describes each communicator first."""
    described = set[int]()
    for rank, waiting in _waiting(table):
        record = _record(target, table, rank) if waiting.communicator not in described else None
        if record is not None and _members(target, table, rank) is not None:
            described.add(waiting.communicator)
            yield record.wait_members, record.wait_members + ELEMENT * record.wait_member_count


def _has_members(table: RankTable) -> bool:
    return table.record_size >= struct.calcsize("<" + layout.FORMS[layout.RankRecord])


def _waiting(table: RankTable) -> Iterator[tuple[Rank, Waiting]]:
    if _has_members(table):
        for rank in table.ranks:
            if rank.record and rank.waiting is not None and rank.state not in (EXITED, MIGRATED_OUT):
                yield rank, rank.waiting


def _record(target: Target, table: RankTable, rank: Rank) -> Optional[layout.RankRecord]:
    """The rank's record, None if it is that of another moment than the table's."""
    try:
        content = target.read(rank.record, table.record_size)
    except RanklensError:
        return None
    (rank_record,) = layout.parse_records(layout.RankRecord, content, table.record_size, table.byte_order)
    now = (
        rank_record.rank,
        rank_record.switches,
        table.calls[rank_record.call] if rank_record.call < len(table.calls) else "",
        rank_record.wait_communicator,
    )
    then = rank.rank, rank.switches, *((rank.waiting.call, rank.waiting.communicator) if rank.waiting else ())
    return rank_record if now == then else None


def _members(target: Target, table: RankTable, rank: Rank) -> Optional[tuple[int, ...]]:
    before = _record(target, table, rank)
    if before is None or not 0 < before.wait_member_count <= min(table.rank_count, MOST_MEMBERS):
        return None
    count = before.wait_member_count
    try:
        content = target.read(before.wait_members, ELEMENT * count)
    except RanklensError:
        return None
    members = struct.unpack(f"{table.byte_order}{count}i", content)
    are_ranks = min(members) >= 0 and max(members) < table.rank_count and len(set(members)) == count
    is_settled = not target.is_live or _record(target, table, rank) == before
    return members if are_ranks and rank.rank in members and is_settled else None
