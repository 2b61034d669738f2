"""Finds a registry in a target, and copies it out as it was at one moment.

Takes a target; gives the records of one generation (the reader's half of the sequence lock in rank_debug.h). It never
waits for the target longer than a deadline, and believes no count that the registry's mapping has no room for.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.layout import Records, RecordTable, RegistryHeader, parse_header, parse_records
from pieglobalsfind.decoders.registry.live_state import standing_still
from pieglobalsfind.errors import MemoryUnreadable, NotVirtualizedError, RegistryError
from pieglobalsfind.machine.lookup import PROCESSORS, machine_name
from pieglobalsfind.memory_map import mapping_at, of_files
from pieglobalsfind.target import MemoryMapping, Target, file_starts, read_many, word_or_none

DEADLINE = 2.0  # seconds; a change of the registry takes microseconds
MOST_TRIES = 10_000
LARGEST = 1 << 30  # bytes of all records; a million ranks need some 200 MB
GENERATION_AT = 16


@dataclass(frozen=True)
class Snapshot:
    """The records of one moment. `source` says how they were found; `torn`: the writer was stopped in the middle.

    `order` is struct's sign of their byte order. `rank_addresses` are those of the ranks' records, in the same order,
    each of `record_size` bytes that both sides know; `restless` are ranks that were switched all the time.
    """

    records: Records
    source: str
    torn: bool
    order: str
    rank_addresses: Sequence[int]
    restless: frozenset[int]
    record_size: int


def take(target: Target) -> Optional[Snapshot]:
    """The target's registry, or None if it has none; raises `RegistryError` if it can't be believed."""
    maps = target.maps()
    registry = find(target, maps)
    if registry is None:
        return None
    address, source = registry
    order = _order(target, address)
    reading, torn = _consistent(target, address, order, maps)
    records, addresses, restless, record_size = reading
    return Snapshot(records, f"{source} at {address:#x}", torn, order, addresses, restless, record_size)


def is_current(target: Target, snapshot: Snapshot) -> bool:
    """Whether no rank has been created, moved or ended since the snapshot was taken."""
    header = snapshot.records.header
    return not target.is_live or _generation(target, header.mapping_address, snapshot.order) == header.generation


def too_fast(target: Target) -> RegistryError:
    """The error for a registry that no two readings agree about."""
    return RegistryError(
        f"the registry of {target.description} changes too fast to be read", "try again, or take a core file with gcore"
    )


def find(target: Target, maps: Sequence[MemoryMapping]) -> Optional[tuple[int, str]]:
    """The header's address and how it was found: by the mapping's name, the exported symbol, or the magic."""
    named = [file.start for file in of_files(maps, layout.MAPPING_NAME) if file.offset == 0]
    if len(named) == 1:
        return named[0], layout.MAPPING_NAME
    unset = False
    for variable in exported(target, maps, layout.SYMBOL):
        address = word_or_none(target, variable)
        if address:
            return address, layout.SYMBOL
        unset = unset or address == 0
    starts = named or [
        mapping.start for mapping in maps if mapping.readable and not mapping.path.startswith(("/", "["))
    ]
    for start, head in zip(starts, read_many(target, [(start, 8) for start in starts])):
        if head is not None and int.from_bytes(head, "little") in (layout.MAGIC, _reversed(layout.MAGIC)):
            return start, "the magic of a registry"
    if unset:
        hint = "wait until the program has begun, and try again"
        raise NotVirtualizedError(f"{target.description} has not made its ranks yet", hint)
    return None


def exported(target: Target, maps: Sequence[MemoryMapping], name: str) -> Iterator[int]:
    """Addresses of a symbol such as `rank_debug_registry` in every loaded object that exports it."""
    from pieglobalsfind.elf.loaded import exporters  # late: most registries have a name

    ends = {mapping.start: mapping.end for mapping in file_starts(maps)}
    for loaded, address in exporters(target.read, file_starts(maps), name):
        if loaded.is_laid_out(ends[loaded.base] - loaded.base):
            yield address


def _reversed(word: int) -> int:
    return int.from_bytes(word.to_bytes(8, "little"), "big")


def _order(target: Target, address: int) -> str:
    """struct's sign of the registry's byte order, by its magic; raises `RegistryError` if there is none."""
    magic = word_or_none(target, address)
    if magic == layout.MAGIC:
        return "<"
    if magic == _reversed(layout.MAGIC):
        return ">"
    if magic is None:
        raise RegistryError(
            f"{target.description} has not the memory of its registry at {address:#x}",
            "write core files with shared memory (0x33 in /proc/PID/coredump_filter)",
        )
    raise RegistryError(
        f"the registry at {address:#x} begins with {magic:#018x} instead of its magic",
        "the program has overwritten it, or never wrote one",
    )


class _Reading(NamedTuple):
    """Everything that is taken between two looks at the generation."""

    records: Records
    addresses: Sequence[int]
    restless: frozenset[int]
    record_size: int


def _consistent(target: Target, address: int, order: str, maps: Sequence[MemoryMapping]) -> tuple[_Reading, bool]:
    """Read until the generation was even and the same before and after, as long as the deadline allows."""
    if not target.is_live:
        before = _generation(target, address, order)
        return _read(target, address, order, maps), before % 2 == 1
    deadline = time.monotonic() + DEADLINE
    first = _generation(target, address, order)
    before = first
    for _ in range(MOST_TRIES):
        if before % 2 == 0:
            problem: Optional[RegistryError] = None
            try:
                reading = _read(target, address, order, maps)
            except RegistryError as error:
                problem = error  # perhaps only torn: believed if the generation stood still
            after = _generation(target, address, order)
            if after == before:
                if problem is not None:
                    raise problem
                return reading, False
        if time.monotonic() > deadline:
            break
        time.sleep(0.0002)
        before = _generation(target, address, order)
    if before == first and first % 2:  # the writer has not moved at all: it is stopped, or has died in the middle
        return _read(target, address, order, maps), True
    raise too_fast(target)


def _generation(target: Target, address: int, order: str) -> int:
    generation: int = struct.unpack(order + "Q", _bytes(target, address + GENERATION_AT, 8))[0]
    return generation


def _bytes(target: Target, address: int, size: int) -> bytes:
    try:
        return target.read(address, size)
    except MemoryUnreadable as error:
        raise RegistryError(f"the registry can't be read, {error.sentence}") from error


def _read(target: Target, address: int, order: str, maps: Sequence[MemoryMapping]) -> _Reading:
    header, _ = parse_header(_bytes(target, address, layout.LEAST_HEADER_SIZE), order)
    _check_header(header, address)
    size = min(header.header_size, layout.HEADER_SIZE)
    header, tables = parse_header(_bytes(target, address, size), order)
    _check_header(header, address)
    _check_mapped(header, maps)
    _check_tables(header, tables)
    contents = [_bytes(target, table.address, table.count * table.stride) if table.count else b"" for table in tables]
    lists = [
        parse_records(kind, data, table.stride, order)
        for kind, data, table in zip(layout.TABLES, contents, tables)
        if kind is not None
    ]
    records, restless = Records(header, contents[0], *lists), frozenset[int]()  # type: ignore[arg-type]
    ranks = tables[layout.TABLES.index(layout.RankRecord)]
    if target.is_live:  # ranks are switched without a word to the generation
        still, restless = standing_still(target, records.ranks, ranks, order)
        records = records._replace(ranks=still)
    end = ranks.address + ranks.count * ranks.stride
    size = layout.known_size(layout.RankRecord, ranks.stride)
    return _Reading(records, range(ranks.address, end, ranks.stride), restless, size)


def _check_header(header: RegistryHeader, address: int) -> None:
    if header.abi_version != layout.ABI_VERSION:
        sentence = f"the registry is of version {header.abi_version} of the debug ABI, this reader knows version 1"
        raise RegistryError(sentence, "use the ranklens that came with the runtime")
    if not layout.LEAST_HEADER_SIZE <= header.header_size <= layout.LARGEST_STRIDE:
        raise RegistryError(f"the registry is damaged, its header claims {header.header_size} bytes")
    if header.machine not in PROCESSORS:
        raise RegistryError(f"the registry is of an unknown processor, {machine_name(header.machine)}")
    if header.mapping_address != address:
        raise RegistryError(f"the registry at {address:#x} is damaged, it claims to be at {header.mapping_address:#x}")


def _check_mapped(header: RegistryHeader, maps: Sequence[MemoryMapping]) -> None:
    at, end = header.mapping_address, header.mapping_address + header.mapping_size
    mapping = mapping_at(maps, at)
    while mapping is not None and at < end:
        at = mapping.end
        mapping = mapping_at(maps, at)
    if at < end or header.mapping_size < header.header_size:
        raise RegistryError(f"the registry is damaged, it claims a mapping of {header.mapping_size} bytes")


def _check_tables(header: RegistryHeader, tables: tuple[RecordTable, ...]) -> None:
    end = header.mapping_address + header.mapping_size
    for name, kind, table in zip(Records._fields[1:], layout.TABLES, tables):
        least = layout.record_size(kind) if kind is not None else 1
        if not least <= table.stride <= layout.LARGEST_STRIDE or (kind is None and table.stride != 1):
            raise RegistryError(f"the registry is damaged, its {name} are {table.stride} bytes apart")
        if table.count and not header.mapping_address <= table.address <= end - table.count * table.stride:
            raise RegistryError(f"the registry is damaged, its {table.count} {name} do not lie within its mapping")
    total = sum(table.count * table.stride for table in tables)
    if total > min(header.mapping_size, LARGEST):
        raise RegistryError(f"the registry is damaged, it claims {total} bytes of records")
