"""Writes registries as a runtime would, from the text of rank_debug.h alone: the reader's own tables are not used.

Takes records as Python values; gives the bytes of the registry's mapping, for any address and byte order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

MAGIC = 0x014742444B4E4152
NONE = 0xFFFFFFFF
HEADER_SIZE = 528
HEADER_SIZE_WITHOUT_EVENTS = 504
FIRST_HEADER_SIZE = 472  # of the first writers of version 1: without the tables from `kept` on


@dataclass(frozen=True)
class Object:
    """A `struct rank_debug_object` with its segments (offset, memory size, file size, protection)."""

    path: str
    base: int
    span: int
    segments: tuple[tuple[int, int, int, int], ...]
    load_bias: int = 0
    build_id: bytes = b"\xab" * 20
    flags: int = 3
    tls_size: int = 0
    tls_offset: int = 0


@dataclass(frozen=True)
class Rank:
    """A `struct rank_debug_rank`."""

    rank: int
    state: int = 3
    context: int = 0
    range: tuple[int, int] = (0, 0)
    stack: tuple[int, int] = (0, 0)
    heap: tuple[int, int] = (0, 0)
    heap_used: int = 0
    call: int = 0
    peer: int = -2
    tag: int = -2
    thread: int = 0
    address_space: int = 0
    switches: int = 1
    process: int = 0
    moves: int = 0
    exit_status: int = 0


@dataclass(frozen=True)
class Registry:
    """Everything in one; tuples of numbers are records in the order of their C declarations."""

    address: int
    objects: tuple[Object, ...] = ()
    ranks: tuple[Rank, ...] = ()
    copies: tuple[tuple[int, int, int], ...] = ()
    tls_blocks: tuple[tuple[int, int, int, int, int, int], ...] = ()
    redirections: tuple[tuple[int, int, int, int, int, int], ...] = ()
    roots: tuple[tuple[int, int, int, int, int], ...] = ()
    registers: tuple[tuple[int, int, int], ...] = ()
    calls: tuple[str, ...] = ("",)
    blocks: tuple[tuple[int, int], ...] = ()
    kept: tuple[tuple[int, int, int, int, int], ...] = ()
    processing_elements: tuple[tuple[int, int, int], ...] = ()
    events: tuple[tuple[int, int, int, int, int, int, int, int], ...] = ()  # the ring's slots, as they lie there
    events_written: int = 0
    rank_count: int = -1
    generation: int = 2
    constructor_heap: tuple[int, int] = (0, 0)
    method: str = "pie"
    order: str = "<"
    abi_version: int = 1
    header_size: int = HEADER_SIZE
    extra: int = 0  # bytes that a newer writer appends to every record and to the header
    mapping_size: int = -1

    def changed(self, **fields: object) -> Registry:
        return replace(self, **fields)  # type: ignore[arg-type]

    def encode(self) -> bytes:
        """The bytes from the start of the mapping on."""
        strings, offsets = self._strings()
        tables = self._tables(strings, offsets)
        at = self.header_size + self.extra
        places, body = [], b""
        for records, stride in tables:
            places.append((self.address + at, len(records), stride))
            content = b"".join(records)
            body += content
            at += len(content)
        size = (at + 4095) & -4096 if self.mapping_size < 0 else self.mapping_size
        head = self._head(size) + b"".join(struct.pack(self.order + "QII", *place) for place in places)
        head += struct.pack(self.order + "Q", self.events_written)
        head = head[: max(self.header_size, FIRST_HEADER_SIZE)]
        return head.ljust(self.header_size + self.extra, b"\xee") + body

    @property
    def size(self) -> int:
        """Of the mapping: whole pages."""
        return (len(self.encode()) + 4095) & -4096

    def _strings(self) -> tuple[bytes, list[int]]:
        content, offsets = b"\0", []
        for one in self.objects:
            offsets.append(len(content))
            content += one.path.encode("utf-8", "surrogateescape") + b"\0"
        return content, offsets

    def _head(self, size: int) -> bytes:
        return struct.pack(
            self.order + "QIIQQQIIIIIIQQQQQ16s16s32s64s64s",
            MAGIC,
            self.abi_version,
            self.header_size + self.extra,
            self.generation,
            self.address,
            size,
            62,
            4711,
            0,
            1,
            len(self.ranks) if self.rank_count < 0 else self.rank_count,
            0,
            0x401000,
            0x402000,
            64,
            *self.constructor_heap,
            self.method.encode(),
            b"scan",
            b"fabricated 1",
            b"job",
            b"node",
        )

    def _tables(self, strings: bytes, paths: list[int]) -> list[tuple[list[bytes], int]]:
        return [
            ([bytes([string]) for string in strings], 1),
            self._records("QQQQQQQqIIIII36s", [self._object(i, one, paths[i]) for i, one in enumerate(self.objects)]),
            self._records("QQQII", [(*segment, 0) for known in self.objects for segment in known.segments]),
            self._records("iIIIQQQQQQQQIIiiQQIIII", [self._rank(rank) for rank in self.ranks]),
            self._records("iIQ", list(self.copies)),
            self._records("iIIIQQ", list(self.tls_blocks)),
            self._records("iIQQQQ", list(self.redirections)),
            self._records("iIIIQ", list(self.roots)),
            self._records("IIq", list(self.registers)),
            self._records("32s", [(call.encode(),) for call in self.calls]),
            self._records("QQ", list(self.blocks)),
            self._records("iIQQQ", list(self.kept)),
            self._records("IIQ", list(self.processing_elements)),
            self._records("QQQIiIIII", [(*event, 0) for event in self.events]),
        ]

    def _records(self, form: str, rows: list[tuple[object, ...]]) -> tuple[list[bytes], int]:
        packed = [struct.pack(self.order + form, *row) + b"\xee" * self.extra for row in rows]
        return packed, struct.calcsize(self.order + form) + self.extra

    def _object(self, index: int, one: Object, path: int) -> tuple[object, ...]:
        first = sum(len(known.segments) for known in self.objects[:index])
        return (
            one.base,
            one.load_bias or one.base,
            one.span,
            0,
            1 if one.tls_size else 0,
            one.tls_size,
            8,
            one.tls_offset,
            path,
            first,
            len(one.segments),
            one.flags,
            len(one.build_id),
            one.build_id,
        )

    def _rank(self, rank: Rank) -> tuple[object, ...]:
        return (
            rank.rank,
            rank.state,
            0,
            rank.thread,
            rank.context,
            *rank.range,
            *rank.stack,
            *rank.heap,
            rank.heap_used,
            rank.address_space,
            rank.call,
            rank.peer,
            rank.tag,
            1,
            rank.switches,
            rank.process,
            rank.moves,
            rank.exit_status,
            0,
        )
