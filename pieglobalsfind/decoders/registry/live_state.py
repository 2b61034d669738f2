"""What changes about a rank at every switch: its state, saved context and call, read again while the job goes on.

Takes a target and a rank of its table; gives the rank as it is now. Runtimes write these fields by plain stores and
without a lock, so of a running job they are believed only when `switches` stood still around the reading.
"""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Optional, TypeVar, Union

from pieglobalsfind import model
from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.errors import MemoryUnreadable, RanklensError, RegistryError
from pieglobalsfind.model import Absent, Rank, RankTable, Region, Waiting
from pieglobalsfind.target import Target, read_many

Value = TypeVar("Value")

MOST_TRIES = 100  # two reads take some 20 microseconds; the busiest ranks are switched every few
PATIENCE = 0.02  # seconds
FEWEST_TRIES = 20  # the first may take long, until files are opened
BREATH = 0.0005  # seconds
SWITCHING = Absent("it was being switched while it was read", "try again")
GONE = Absent("it has migrated to another process", "look for it in the job's other processes")
_NO_CONTEXT = {
    model.STARTING: Absent("it has not begun to run"),
    model.RUNNING: Absent("it is running", "its registers are its kernel thread's"),
    model.MIGRATED_OUT: GONE,
    model.EXITED: Absent("it has ended"),
}
_UNSAVED = Absent("the runtime has saved none: it runs, or is just being left")


def context_of(rank_record: layout.RankRecord) -> Union[int, Absent]:
    """Where the rank's registers are saved."""
    return _NO_CONTEXT.get(model.STATES[rank_record.state]) or rank_record.context or _UNSAVED


def waiting_of(rank_record: layout.RankRecord, calls: tuple[str, ...]) -> Optional[Waiting]:
    """What the rank waits for, None if it waits for nothing."""
    return (
        Waiting(calls[rank_record.call], rank_record.wait_peer, rank_record.wait_tag, rank_record.wait_communicator)
        if rank_record.call
        else None
    )


def moment_of(rank_record: layout.RankRecord) -> tuple[int, int, int]:
    """Equal for two readings of a record only if the rank was not switched in between."""
    return rank_record.state, rank_record.context, rank_record.switches


def standing_still(
    target: Target, records: list[layout.RankRecord], table: layout.RecordTable, order: str
) -> tuple[list[layout.RankRecord], frozenset[int]]:
    """The records with those that changed meanwhile read again until they stand still, and the ranks that never did.

    Raises `RegistryError` if they can't be read any more.
    """
    data = _bytes(target, table.address, table.count * table.stride)
    again = layout.parse_records(layout.RankRecord, data, table.stride, order)
    size, restless = layout.known_size(layout.RankRecord, table.stride), set()
    for index, (old, new) in enumerate(zip(records, again)):
        if moment_of(old) != moment_of(new):
            still = _stands_still(target, new, table.address + index * table.stride, size, order)
            again[index] = still or new
            if still is None:
                restless.add(new.rank)
    return again, frozenset(restless)


def _stands_still(
    target: Target, first: layout.RankRecord, address: int, size: int, order: str
) -> Optional[layout.RankRecord]:
    """The record once two readings in a row agree, None if they never do."""
    last = first
    for _ in range(MOST_TRIES):
        (now,) = layout.parse_records(layout.RankRecord, _bytes(target, address, size), size, order)
        if moment_of(now) == moment_of(last):
            return now
        last = now
    return None


def _bytes(target: Target, address: int, size: int) -> bytes:
    try:
        return target.read(address, size) if size else b""
    except MemoryUnreadable as error:
        raise RegistryError(f"the registry can't be read any more, {error.sentence}") from error


def without(table: RankTable, leaving: Collection[int]) -> RankTable:
    """The table with ranks that are being packed told as gone already: nothing may be put into their images."""
    if not leaving:
        return table
    return replace(table, ranks=tuple(_gone(rank) if rank.rank in leaving else rank for rank in table.ranks))


def _gone(rank: Rank) -> Rank:
    return replace(
        rank,
        state=model.MIGRATED_OUT,
        context=GONE,
        stack=GONE,
        heap=GONE,
        heap_used=GONE,
        waiting=None,
        placements=(),
    )


def read_again(target: Target, table: RankTable, rank: Rank) -> Rank:
    """The rank as its record has it now; raises `RanklensError` if the record can't be read or makes no sense."""
    return as_recorded(table, rank, target.read(rank.record, _form(table.byte_order).size))


def records_now(target: Target, table: RankTable, ranks: Sequence[Rank]) -> list[Optional[bytes]]:
    """What the ranks' records hold, at about one moment; None for one that can't be read."""
    size = _form(table.byte_order).size
    return read_many(target, [(rank.record, size) for rank in ranks])


def as_recorded(table: RankTable, rank: Rank, record: bytes) -> Rank:
    """The rank as its record has it; raises `RanklensError` if the record makes no sense."""
    rank_record = layout.RankRecord(*_form(table.byte_order).unpack(record))
    if (
        rank_record.rank != rank.rank
        or rank_record.state >= len(model.STATES)
        or rank_record.call >= max(len(table.calls), 1)
    ):
        raise RegistryError(
            f"the record of rank {rank.rank} is damaged or another rank's by now", "look at the job again"
        )
    state, thread, switches = model.STATES[rank_record.state], rank_record.kernel_thread, rank_record.switches
    context, waiting = context_of(rank_record), waiting_of(rank_record, table.calls)
    if (switches, state, context, waiting, thread) == (
        rank.switches,
        rank.state,
        rank.context,
        rank.waiting,
        rank.kernel_thread,
    ):
        return rank  # as most are: a new one takes longer than all the rest
    return replace(rank, state=state, context=context, waiting=waiting, switches=switches, kernel_thread=thread)


@lru_cache(maxsize=2)
def _form(order: str) -> struct.Struct:
    """Of the part of a rank's record that every writer has."""
    return struct.Struct(order + layout.first_form(layout.RankRecord))


def while_suspended(target: Target, table: RankTable, rank: Rank, read: Callable[[Rank], Value]) -> tuple[Rank, Value]:
    """The rank, and what `read` makes of it, its registers and its stack: all of one moment, also if the job goes on.

    Raises what `read` raises if the rank stood still meanwhile, and `RanklensError` if it never does. If the rank runs,
    wait for it, up to `PATIENCE`.
    """
    if not target.is_live:
        return rank, read(rank)
    if not rank.record:
        return rank, _while_unchanged(target, table, rank, read)
    now, patience = read_again(target, table, rank), time.monotonic() + PATIENCE
    for tries in itertools.count(1):
        value, problem = _attempt(read, now)
        after = read_again(target, table, now)
        late = tries >= FEWEST_TRIES and time.monotonic() > patience
        if (after.state, after.context, after.switches) == (now.state, now.context, now.switches):
            if value is not None:
                return now, value[0]
            if (now.state != model.RUNNING and now.context is not _UNSAVED) or late:
                raise problem or _restless(rank)
            time.sleep(BREATH)
        elif late:
            raise _restless(rank)
        now = after
    raise _restless(rank)


def _while_unchanged(target: Target, table: RankTable, rank: Rank, read: Callable[[Rank], Value]) -> Value:
    """Of a rank without a record: believed if it did not run, and its context and its stack were the same, before and
    after two readings that agree. A runtime that counts no switches tells no more.

    Raises `RanklensError` if it was not so.
    """
    before = _in_use(target, table, rank)
    value = read(rank)
    if before is None or read(rank) != value or before != _in_use(target, table, rank):
        raise _restless(rank)
    return value


def _in_use(target: Target, table: RankTable, rank: Rank) -> Optional[list[Optional[bytes]]]:
    """The word that leads to the context, and the stack from there on, as far as they are known.

    None if the rank runs, or waits elsewhere by now.
    """
    places = [(rank.context_at, 8)] if rank.context_at else []
    if isinstance(rank.context, int) and isinstance(rank.stack, Region) and rank.context in rank.stack:
        places.append((rank.context, rank.stack.end - rank.context))
    saved = read_many(target, places)
    currents = read_many(target, [(address, 8) for address in table.currents])
    runs = rank.thread and rank.thread.to_bytes(8, "little") in currents
    has_moved = rank.context_at and isinstance(rank.context, int) and saved[0] != rank.context.to_bytes(8, "little")
    return None if rank.state != model.RUNNING and (runs or has_moved) else saved


def _restless(rank: Rank) -> RanklensError:
    return RanklensError(
        f"rank {rank.rank} is switched too often to be read", "stop the job with a debugger, or take a core file"
    )


def _attempt(read: Callable[[Rank], Value], rank: Rank) -> tuple[Optional[tuple[Value]], Optional[RanklensError]]:
    """The result in a tuple of its own, or why there is none."""
    try:
        return (read(rank),), None
    except RanklensError as error:
        return None, error
