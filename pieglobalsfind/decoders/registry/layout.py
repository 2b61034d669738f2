"""The records of the debug ABI, version 1, as rank_debug.h lays them out: one named tuple and one struct format each.

Takes bytes; gives tuples of numbers and bytes, in the order of the C declarations. It judges nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

MAGIC = 0x014742444B4E4152
ABI_VERSION = 1
MAPPING_NAME = "memfd:rank_debug_registry"
SYMBOL = "rank_debug_registry"
NONE = 0xFFFFFFFF

OBJECT_PRIVATIZED, OBJECT_PROGRAM = 1, 2
TLS_THREAD_POINTER, TLS_BLOCK = 1, 2
REGISTER_AT_OFFSET, REGISTER_IS_OFFSET = 1, 2
# Kinds of events
BEFORE_COPIES, AFTER_COPIES, CREATED, BEFORE_PACK, AFTER_UNPACK, RANK_EXITED = range(1, 7)

LARGEST_STRIDE = 4096  # bytes of a record that a reader believes


@dataclass(frozen=True)
class RecordTable:
    """A table in the registry: where it begins, its number of records, and their distance in bytes."""

    address: int
    count: int
    stride: int


class RegistryHeader(NamedTuple):
    """`struct rank_debug_header` of rank_debug.h."""

    magic: int
    abi_version: int
    header_size: int
    generation: int
    mapping_address: int
    mapping_size: int
    machine: int
    process_id: int
    process_index: int
    process_count: int
    rank_count: int
    reserved0: int
    event_function: int
    entry_function: int
    entry_function_size: int
    constructor_heap: int
    constructor_heap_size: int
    method: bytes
    rewrite_mode: bytes
    runtime: bytes
    job_id: bytes
    node: bytes


class ObjectRecord(NamedTuple):
    """`struct rank_debug_object` of rank_debug.h."""

    base: int
    load_bias: int
    span: int
    dynamic: int
    tls_module_id: int
    tls_size: int
    tls_align: int
    tls_offset: int
    path: int
    first_segment: int
    segment_count: int
    flags: int
    build_id_size: int
    build_id: bytes


class SegmentRecord(NamedTuple):
    """`struct rank_debug_segment` of rank_debug.h."""

    offset: int
    memory_size: int
    file_size: int
    protection: int
    reserved0: int


class RankRecord(NamedTuple):
    """`struct rank_debug_rank` of rank_debug.h."""

    rank: int
    state: int
    processing_element: int
    kernel_thread: int
    context: int
    range_start: int
    range_size: int
    stack_start: int
    stack_size: int
    heap_start: int
    heap_size: int
    heap_used: int
    address_space: int
    call: int
    wait_peer: int
    wait_tag: int
    wait_communicator: int
    switches: int
    process: int = NONE
    moves: int = 0
    exit_status: int = 0
    wait_member_count: int = 0
    wait_members: int = 0


class Copy(NamedTuple):
    """`struct rank_debug_copy` of rank_debug.h."""

    rank: int
    object: int
    base: int


class TlsBlockRecord(NamedTuple):
    """`struct rank_debug_tls_block` of rank_debug.h."""

    rank: int
    object: int
    kind: int
    level: int
    address: int
    size: int


class Redirection(NamedTuple):
    """`struct rank_debug_redirection` of rank_debug.h."""

    rank: int
    object: int
    original: int
    size: int
    storage: int
    got_slot: int


class RootRecord(NamedTuple):
    """`struct rank_debug_root` of rank_debug.h."""

    rank: int
    object: int
    type_name: int
    reserved0: int
    address: int


class RegisterRecord(NamedTuple):
    """`struct rank_debug_register` of rank_debug.h."""

    dwarf_register: int
    rule: int
    offset: int


class CallRecord(NamedTuple):
    """`struct rank_debug_call` of rank_debug.h."""

    name: bytes


class BlockRecord(NamedTuple):
    """`struct rank_debug_block` of rank_debug.h."""

    address: int
    size: int


class Kept(NamedTuple):
    """`struct rank_debug_kept` of rank_debug.h."""

    rank: int
    reserved0: int
    context: int
    thread: int
    range_end: int


class ProcessingElement(NamedTuple):
    """`struct rank_debug_processing_element` of rank_debug.h."""

    processing_element: int
    kernel_thread: int
    current: int


class EventEntry(NamedTuple):
    """`struct rank_debug_event_entry` of rank_debug.h."""

    number: int
    monotonic: int
    realtime: int
    kind: int
    rank: int
    processing_element: int
    other_process: int
    moves: int
    reserved0: int


class RankLoadRecord(NamedTuple):
    """`struct rank_debug_load` of rank_debug.h."""

    busy: int
    sent: int


class SentRecord(NamedTuple):
    """`struct rank_debug_sent` of rank_debug.h."""

    receiver: int
    reserved0: int
    messages: int
    bytes: int
    collective_messages: int
    collective_bytes: int


class ElementLoadRecord(NamedTuple):
    """`struct rank_debug_element_load` of rank_debug.h."""

    idle: int
    undivided: int
    since: int
    began: int
    began_monotonic: int
    later: int
    later_monotonic: int
    kernel_thread: int
    turns: int


HEADER_FORM = "QIIQQQIIIIIIQQQQQ16s16s32s64s64s"
TABLE_FORM = "QII"
FORMS: dict[type[Any], str] = {
    ObjectRecord: "QQQQQQQqIIIII36s",
    SegmentRecord: "QQQII",
    RankRecord: "iIIIQQQQQQQQIIiiQQIIIIQ",
    Copy: "iIQ",
    TlsBlockRecord: "iIIIQQ",
    Redirection: "iIQQQQ",
    RootRecord: "iIIIQ",
    RegisterRecord: "IIq",
    CallRecord: "32s",
    BlockRecord: "QQ",
    Kept: "iIQQQ",
    ProcessingElement: "IIQ",
    EventEntry: "QQQIiIIII",
    RankLoadRecord: "QQ",
    SentRecord: "IIQQQQ",
    ElementLoadRecord: "QQQQQQQII",
}

STATE_AT = 4  # where a rank's record has its state, in bytes
STATE_RUNNING = 2
CONTEXT_AT = struct.calcsize("<iIII")  # where a rank's record has the address of its context

# What earlier writers of version 1 had of records that have grown since, the first ones' form first.
EARLIER_FORMS: dict[type[Any], tuple[str, ...]] = {
    RankRecord: ("iIIIQQQQQQQQIIiiQQ", "iIIIQQQQQQQQIIiiQQII", "iIIIQQQQQQQQIIiiQQIIII")
}

# The header's tables in its order; None: bytes. The first writers of version 1 ended with the blocks.
TABLES = (
    None, ObjectRecord, SegmentRecord, RankRecord, Copy, TlsBlockRecord, Redirection, RootRecord, RegisterRecord,
    CallRecord, BlockRecord, Kept, ProcessingElement,
)  # fmt: skip
FIXED_SIZE = struct.calcsize("<" + HEADER_FORM)
TABLE_SIZE = struct.calcsize("<" + TABLE_FORM)
LEAST_HEADER_SIZE = FIXED_SIZE + (TABLES.index(BlockRecord) + 1) * TABLE_SIZE
EVENTS_AT = FIXED_SIZE + len(TABLES) * TABLE_SIZE  # the ring's table; a header may end before it
EVENTS_WRITTEN_AT = EVENTS_AT + TABLE_SIZE
WITH_EVENTS_SIZE = EVENTS_WRITTEN_AT + 8
LOADS_AT = WITH_EVENTS_SIZE  # a header may end before it, too
ELEMENT_LOADS_AT = LOADS_AT + TABLE_SIZE
HEADER_SIZE = ELEMENT_LOADS_AT + TABLE_SIZE
SENT_TABLE_FORM = "II"  # struct rank_debug_sent_table: entries, and their distance

Record = TypeVar("Record")


class Records(NamedTuple):
    """Everything that a registry holds."""

    header: RegistryHeader
    strings: bytes
    objects: list[ObjectRecord]
    segments: list[SegmentRecord]
    ranks: list[RankRecord]
    copies: list[Copy]
    tls_blocks: list[TlsBlockRecord]
    redirections: list[Redirection]
    roots: list[RootRecord]
    context_registers: list[RegisterRecord]
    calls: list[CallRecord]
    blocks: list[BlockRecord]
    kept: list[Kept]
    processing_elements: list[ProcessingElement]


def record_size(kind: type[Any]) -> int:
    """Bytes that every record of version 1 has."""
    return struct.calcsize("<" + first_form(kind))


def first_form(kind: type[Any]) -> str:
    """What every writer of version 1 has of a record."""
    return EARLIER_FORMS.get(kind, (FORMS[kind],))[0]


def known_form(kind: type[Any], stride: int) -> str:
    """What this reader knows of a record of that stride: the largest form that fits into it."""
    forms = (FORMS[kind], *reversed(EARLIER_FORMS.get(kind, ())))
    return next((form for form in forms if struct.calcsize("<" + form) <= stride), forms[-1])


def known_size(kind: type[Any], stride: int) -> int:
    """Bytes of a record of that stride that this reader knows."""
    return struct.calcsize("<" + known_form(kind, stride))


def parse_header(data: bytes, order: str) -> tuple[RegistryHeader, tuple[RecordTable, ...]]:
    """The header and its tables, in the order of `TABLES`; those that it is too short for are empty."""
    header = RegistryHeader._make(struct.unpack_from(order + HEADER_FORM, data))
    count = max(0, min(EVENTS_AT, header.header_size, len(data)) - FIXED_SIZE) // TABLE_SIZE
    there = data[FIXED_SIZE : FIXED_SIZE + count * TABLE_SIZE]
    tables = [RecordTable(*fields) for fields in struct.iter_unpack(order + TABLE_FORM, there)]
    missing = TABLES[len(tables) :]
    tables += [RecordTable(0, 0, record_size(kind) if kind is not None else 1) for kind in missing]
    return header, tuple(tables)


def parse_events_table(data: bytes, order: str) -> RecordTable:
    """Where a header says that the ring of events is; of one that ends before it, an empty table."""
    header_size = RegistryHeader._make(struct.unpack_from(order + HEADER_FORM, data)).header_size
    if min(header_size, len(data)) < WITH_EVENTS_SIZE:
        return RecordTable(0, 0, record_size(EventEntry))
    return RecordTable(*struct.unpack_from(order + TABLE_FORM, data, EVENTS_AT))


def parse_load_tables(data: bytes, order: str) -> tuple[RecordTable, RecordTable]:
    """Where a header says that ranks' and processing elements' loads are; of one without them, empty tables."""
    header_size = RegistryHeader._make(struct.unpack_from(order + HEADER_FORM, data)).header_size
    if min(header_size, len(data)) < HEADER_SIZE:
        return RecordTable(0, 0, record_size(RankLoadRecord)), RecordTable(0, 0, record_size(ElementLoadRecord))
    ranks, elements = (struct.unpack_from(order + TABLE_FORM, data, at) for at in (LOADS_AT, ELEMENT_LOADS_AT))
    return RecordTable(*ranks), RecordTable(*elements)


def parse_records(kind: type[Record], data: bytes, stride: int, order: str) -> list[Record]:
    """All records in `data`, each `stride` bytes apart.

    What newer writers appended to them is skipped; fields that older ones had not have their defaults.
    """
    form = known_form(kind, stride)
    make: Any = kind
    rows: Iterable[tuple[Any, ...]] = struct.iter_unpack(f"{order}{form}{stride - known_size(kind, stride)}x", data)
    return list(map(make._make, rows)) if form is FORMS[kind] else [make(*row) for row in rows]


def path_text(field: bytes) -> str:
    """A NUL-terminated path; bytes that are not UTF-8 stay what they are (PEP 383), so that the file can be opened."""
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def text(field: bytes) -> str:
    """A NUL-terminated text."""
    return field.partition(b"\0")[0].decode("utf-8", "replace")
