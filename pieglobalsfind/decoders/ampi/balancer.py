"""The ranks' load by Charm++'s load-balancing database, which a job has that was started with a balancer.

Takes a target and its rank table; gives seconds of ranks and processing elements. Classes are found by exported symbols
and by form, as of Charm++ 8 (src/ck-ldb: LBDatabase.h, LBObj.h); a database that does not validate is not used. A
balancing clears it. With +LBCommOn it has messages, too, but of AMPI's ranks none is named as a sender.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Optional, Union

from pieglobalsfind.decoders.ampi.elements import beginning, group_tables, groups, of_class, words_of_elements
from pieglobalsfind.decoders.ampi.runtime_variables import Loader, find_loader
from pieglobalsfind.decoders.registry.load_counts import ElementLoad, ProcessLoad, RankLoad
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import RUNNING, Absent, RankTable
from pieglobalsfind.target import Target, read_many, read_or_none

HOW = "as AMPI's load-balancing database counts since the last balancing, or since the job began"
MANAGER = "_ZTV9LBManager"
MANAGER_SIZE = 0x400  # bytes that are searched for the pointer to the database
ENTRY = struct.Struct("<Qi4x")  # LBDatabase::LBObjEntry
OBJECT = struct.Struct("<QiiQi4xd??H4xdd")  # LBObj
# LBDatabase: the vector of objects, that of their managers, four ints, a pointer, whether it counts, the
# objects' time; then LBMachineUtil: whether it is on, its times
DATABASE = struct.Struct("<QQQ24x16x8xB7xdB7xdddd")
MOST_OBJECTS = 1 << 20
MONOTONIC = 1e-9
NOT_THERE = Absent("it has no load-balancing database", "start the job with +balancer GreedyLB, for instance")
OFF = Absent("its load-balancing database counts nothing", "start the job with +balancer, and without +LBOff")
NO_MESSAGES = Absent("its load-balancing database names processing elements as senders of messages, not ranks")
NO_CLOCK = Absent("Charm++'s clock is not known")


class LoadObject(NamedTuple):
    """A migratable object of the database: `record` is its location record, which the rank's element points to."""

    record: int
    busy: float
    started: float


@dataclass(frozen=True)
class Database:
    """What one processing element's database has; times are seconds of Charm++'s clock."""

    objects: tuple[LoadObject, ...]
    is_on: bool
    total: float
    idle: float
    since: float


def read_balancer(target: Target, table: RankTable) -> Union[ProcessLoad, Absent]:
    """Read the loads of a process of AMPI's, or say why there are none."""
    loader = find_loader(target, target.maps())
    candidates = [] if loader is None else list(_databases(target, loader))
    if loader is None or not candidates or None in candidates:
        return NOT_THERE
    databases = [database for database in candidates if database is not None]
    if not any(database.is_on for database in databases):
        return OFF
    now = _now(target, loader)
    homes = _homes(target, loader, table, databases)
    running = {rank.rank for rank in table.ranks if rank.state == RUNNING}
    ranks = tuple(
        RankLoad(number, _busy(each, now if number in running else None), NO_MESSAGES)
        for number, each in sorted(homes.items())
    )
    numbers = [number for number, _ in loader.currents] if len(loader.currents) == len(databases) else []
    thread = table.process_id or getattr(target, "pid", 0) if len(databases) == 1 else 0
    elements = tuple(
        ElementLoad(number, thread, _elapsed(database, now), database.idle, 0.0)
        for number, database in zip(numbers or range(len(databases)), databases)
    )
    return ProcessLoad(ranks, elements, HOW)


# ---- databases ----


def _databases(target: Target, loader: Loader) -> Iterator[Optional[Database]]:
    """That of each processing element, None where it does not validate."""
    table = loader.elf.symbol(MANAGER)
    if table is None:
        return
    for groups_of in group_tables(target, loader):
        for manager in of_class(target, list(groups(target, groups_of)), table):
            yield _database_of(target, manager)


def _database_of(target: Target, manager: int) -> Optional[Database]:
    data = beginning(target, manager, MANAGER_SIZE)
    pointers = struct.unpack_from(f"<{len(data) // 8}Q", data)
    heads = read_many(target, [(pointer, DATABASE.size) for pointer in pointers])
    databases = (_database(target, head) for head in heads if head is not None)
    return next((database for database in databases if database is not None), None)


def _database(target: Target, head: bytes) -> Optional[Database]:
    """A database whose objects all have the number of their place in it."""
    begin, end, room, is_on, busy, state, total, idle, since, _ = DATABASE.unpack(head)
    count = (end - begin) // ENTRY.size
    is_vector = 0 < begin < end <= room and (end - begin) % ENTRY.size == 0 and count <= MOST_OBJECTS
    if not is_vector or is_on > 1 or state > 1 or busy < 0 or idle < 0 or total < 0:
        return None
    entries = read_or_none(target, begin, end - begin)
    places = [place for place, _ in ENTRY.iter_unpack(entries or b"")]
    records = read_many(target, [(place, OBJECT.size) for place in places])
    objects = []
    for index, (place, data) in enumerate(zip(places, records)):
        if not place:
            continue
        if data is None:
            return None
        record, _, _, _, handle, wall, _, _, _, started, _ = OBJECT.unpack(data)
        if handle != index or not 0 <= wall < float("inf"):
            return None
        objects.append(LoadObject(record, wall, started))
    return Database(tuple(objects), bool(is_on), total, idle, since) if objects else None


def _homes(target: Target, loader: Loader, table: RankTable, databases: list[Database]) -> Mapping[int, LoadObject]:
    """By rank, its object: a rank's element points to its thread and to its location record."""
    threads = {rank.thread: rank.rank for rank in table.ranks if rank.thread}
    objects = {each.record: each for database in databases for each in database.objects}
    homes: dict[int, LoadObject] = {}
    for words in words_of_elements(target, loader):
        rank = next((threads[value] for value in words if value in threads), None)
        each = next((objects[value] for value in words if value in objects), None)
        if rank is not None and each is not None:
            homes[rank] = each
    return homes


# ---- times ----


def _now(target: Target, loader: Loader) -> Optional[float]:
    """Charm++'s clock, which counts from an epoch of the system's monotonic clock (conv-core/hrctimer.C)."""
    if not target.is_live or loader.epoch is None:
        return None
    try:
        (epoch,) = struct.unpack("<q", target.read(loader.epoch, 8))
    except MemoryUnreadable:
        return None
    now = (time.monotonic_ns() - epoch) * MONOTONIC
    return now if epoch > 0 and now >= 0 else None


def _busy(each: LoadObject, now: Optional[float]) -> float:
    """With the time since it was resumed, if it runs."""
    return each.busy + (max(now - each.started, 0.0) if now is not None and each.started >= 0 else 0.0)


def _elapsed(database: Database, now: Optional[float]) -> Union[float, Absent]:
    if now is None:
        return NO_CLOCK
    return database.total + (max(now - database.since, 0.0) if database.since >= 0 else 0.0)
