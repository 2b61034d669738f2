"""Finds a registry in a target, and copies a consistent state of it.

Takes a `Target`; gives the header's fields and the tables' bytes. Knows where records stand and not what they mean.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from pieglobalsfind.decoders import registry_layout as layout
from pieglobalsfind.elf_memory import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError, RegistryError
from pieglobalsfind.target import MemoryMapping, Target

_LONGEST_WAIT = 2.0  # seconds until a registry whose writer never pauses is given up
_LARGEST = 1 << 34
_DAMAGED = "the process has overwritten it, or the core is incomplete"


@dataclass(frozen=True)
class RawTable:
    """`content` holds `count` records of `stride` bytes."""

    count: int
    stride: int
    content: bytes

    def records(self, name: str) -> Iterator[tuple[Any, ...]]:
        """The records by the layout's format; what a newer writer appended to each is skipped."""
        form = layout.RECORDS[name]
        if self.stride == form.size:
            return form.iter_unpack(self.content)
        return (form.unpack_from(self.content, index * self.stride) for index in range(self.count))


@dataclass(frozen=True)
class RawRegistry:
    """`torn`: the writer was interrupted in the middle of a change (a stopped target or a core)."""

    address: int
    fields: dict[str, Any]
    tables: dict[str, RawTable]
    torn: bool


def find_header(target: Target) -> Optional[int]:
    """The address of the header: by symbol, else by the name of its mapping, else by its magic; None: there is none."""
    maps = target.maps()
    for candidate in (*by_name(maps), *by_symbol(target, maps), *by_magic(target, maps)):
        if candidate:
            return candidate
    return None


def by_name(maps: Sequence[MemoryMapping]) -> Iterator[int]:
    return (one.start for one in maps if layout.MAPPING_NAME in one.path and one.offset == 0)


def by_symbol(target: Target, maps: Sequence[MemoryMapping]) -> Iterator[int]:
    """The variable `rank_debug_registry` in the dynamic symbols of any mapped file, read from memory."""
    for one in maps:
        if one.offset or not one.readable or not one.path.startswith("/"):
            continue
        try:
            place = LoadedElf(target.read, one.start).symbol(layout.SYMBOL)
            if place is not None:
                yield int.from_bytes(target.read(place, 8), "little")
        except (ObjectFileError, MemoryUnreadable):
            continue


def by_magic(target: Target, maps: Sequence[MemoryMapping]) -> Iterator[int]:
    for one in maps:
        if one.readable and (not one.path or "memfd" in one.path):
            try:
                if target.read(one.start, len(layout.MAGIC)) == layout.MAGIC:
                    yield one.start
            except MemoryUnreadable:
                continue


def read_registry(target: Target, address: int) -> RawRegistry:
    """A state of the registry in which no record is half written; raises `RegistryError` if there is none."""
    deadline = time.monotonic() + _LONGEST_WAIT
    while True:
        try:
            first = read_once(target, address)
            again = generation_of(target, address)
        except MemoryUnreadable as error:
            raise RegistryError(f"the registry of {target.description} is unreadable ({error.sentence})", _DAMAGED)
        steady = first.fields["generation"] == again and not first.torn
        if steady or not target.is_live:
            return first
        if time.monotonic() > deadline:
            raise RegistryError(
                f"the registry of {target.description} never came to rest", "its ranks are being made; try again"
            )


def generation_of(target: Target, address: int) -> int:
    value: int = layout.GENERATION.unpack(target.read(address + layout.GENERATION_OFFSET, 8))[0]
    return value


def read_once(target: Target, address: int) -> RawRegistry:
    content = target.read(address, layout.HEADER_SIZE)
    fields = dict(zip(layout.HEADER_FIELDS, layout.HEADER.unpack_from(content)))
    check_header(fields)
    tables = {
        name: read_table(target, name, fields, content, layout.HEADER.size + index * layout.TABLE.size)
        for index, name in enumerate(layout.TABLES)
    }
    return RawRegistry(address, fields, tables, bool(fields["generation"] & 1))


def check_header(fields: dict[str, Any]) -> None:
    if fields["magic"] == layout.MAGIC[::-1]:
        raise RegistryError("the registry is big-endian, which this reader does not know", "use a little-endian target")
    if fields["magic"] != layout.MAGIC:
        raise RegistryError("the registry does not begin with its magic bytes", _DAMAGED)
    if fields["abi_version"] != layout.ABI_VERSION:
        raise RegistryError(
            f"the registry is of ABI version {fields['abi_version']}, this reader knows {layout.ABI_VERSION}",
            "use the ranklens that fits the runtime",
        )
    if fields["header_size"] < layout.HEADER_SIZE:
        raise RegistryError(f"the registry's header has {fields['header_size']} bytes, too few", _DAMAGED)


def read_table(target: Target, name: str, fields: dict[str, Any], content: bytes, offset: int) -> RawTable:
    address, count, stride = layout.TABLE.unpack_from(content, offset)
    start, size = fields["mapping_address"], fields["mapping_size"]
    if count == 0:
        return RawTable(0, layout.RECORDS[name].size, b"")
    if stride < layout.RECORDS[name].size or size > _LARGEST:
        raise RegistryError(f"the registry's table of {name} makes no sense", _DAMAGED)
    if not start <= address <= address + count * stride <= start + size:
        raise RegistryError(f"the registry's table of {name} lies outside the registry", _DAMAGED)
    return RawTable(count, stride, target.read(address, count * stride))
