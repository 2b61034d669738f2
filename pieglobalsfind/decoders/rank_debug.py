"""Decodes a registry (runtime-hooks/include/rank_debug.h) into a rank table.

Takes a `Target`; checks every index, size and range of what stands there, since the process may have overwritten it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Optional, Union

from pieglobalsfind.decoders import registry_layout as layout
from pieglobalsfind.decoders.registry_memory import RawRegistry, find_header, read_registry
from pieglobalsfind.errors import RegistryError
from pieglobalsfind.model import (
    BLOCKED,
    READY,
    STATES,
    Absent,
    Alias,
    Evidence,
    Object,
    Placement,
    Rank,
    RankTable,
    Rebase,
    Redirect,
    Region,
    RegisterRule,
    Root,
    Segment,
    TlsBlock,
    Waiting,
)
from pieglobalsfind.target import Target

_PRIVATIZED, _PROGRAM = 1, 2
_THREAD_POINTER = 1
_SAVED = 1
_TOP = 1 << 47
_DAMAGED = "the process has overwritten it, or the core is incomplete"


def decode(target: Target) -> Optional[RankTable]:
    """The ranks that a registry tells of, or None if there is none; raises `RegistryError` if it is damaged."""
    address = find_header(target)
    if address is None:
        return None
    return Decoder(read_registry(target, address)).table()


def damaged(what: str) -> RegistryError:
    return RegistryError(f"the registry is damaged: {what}", _DAMAGED)


def name_of(content: bytes) -> str:
    return content.split(b"\0", 1)[0].decode("utf-8", "replace")


def region(start: int, size: int, what: str) -> Region:
    if start + size > _TOP:
        raise damaged(f"{what} is at {start:#x}, of {size} bytes")
    return Region(start, size)


class Decoder:
    """One decoding; every method reads a table."""

    def __init__(self, raw: RawRegistry) -> None:
        self._raw = raw
        self._fields = raw.fields
        self._evidence = Evidence("registry", f"rank_debug registry at {raw.address:#x}")
        self._calls = [name_of(name) for (name,) in raw.tables["calls"].records("calls")]

    def table(self) -> RankTable:
        fields, objects = self._fields, self._objects()
        heap = None
        if fields["constructor_heap"]:
            heap = region(fields["constructor_heap"], fields["constructor_heap_size"], "the constructor heap")
        placements = self._placements(objects)
        ranks = sorted(self._ranks(placements, heap), key=lambda one: one.rank)
        if any(before.rank == after.rank for before, after in zip(ranks, ranks[1:])):
            raise damaged("two ranks have the same number")
        return RankTable(
            method=name_of(fields["method"]),
            runtime=name_of(fields["runtime"]),
            rewrite_mode=name_of(fields["rewrite_mode"]),
            job_id=name_of(fields["job_id"]),
            node=name_of(fields["node"]),
            process_id=fields["process_id"],
            process_index=fields["process_index"],
            process_count=fields["process_count"],
            rank_count=fields["rank_count"],
            generation=fields["generation"],
            objects=objects,
            ranks=tuple(ranks),
            context_layout=self._layout(),
            evidence=self._evidence,
            entry_function=fields["entry_function"],
            entry_function_size=fields["entry_function_size"],
            event_function=fields["event_function"],
            constructor_heap=heap,
            constructor_blocks=tuple(self._raw.tables["blocks"].records("blocks")),
            warnings=self._warnings(len(ranks)),
        )

    def _warnings(self, known: int) -> tuple[str, ...]:
        found = []
        if self._raw.torn:
            found.append("the registry was being changed at this moment: some ranks may be missing or half described")
        if known < self._fields["rank_count"] and self._fields["process_count"] <= 1:
            found.append(f"{known} of {self._fields['rank_count']} ranks have been made so far")
        return tuple(found)

    def _string(self, offset: int) -> str:
        content = self._raw.tables["strings"].content
        if offset == layout.NONE or offset >= len(content):
            return ""
        return content[offset : content.find(b"\0", offset)].decode("utf-8", "surrogateescape")

    def _objects(self) -> tuple[Object, ...]:
        segments = list(self._raw.tables["segments"].records("segments"))
        return tuple(
            self._object(index, record, segments)
            for index, record in enumerate(self._raw.tables["objects"].records("objects"))
        )

    def _object(self, index: int, record: tuple[int, ...], segments: list[tuple[int, ...]]) -> Object:
        base, bias, span, dynamic, module, tls_size, tls_align, tls_offset = record[:8]
        path, first, count, flags, id_size = record[8:13]
        build_id: bytes = record[13]  # type: ignore[assignment]
        region(base, span, f"object {index}")
        if first + count > len(segments) or id_size > len(build_id):
            raise damaged(f"object {index} has segments {first} to {first + count} of {len(segments)}")
        return Object(
            index=index,
            path=self._string(path),
            build_id=build_id[:id_size],
            base=base,
            load_bias=bias,
            span=span,
            segments=tuple(
                self._segment(one, span) for one in sorted(segments[first : first + count], key=lambda one: one[0])
            ),
            privatized=bool(flags & _PRIVATIZED),
            is_program=bool(flags & _PROGRAM),
            dynamic=dynamic,
            tls_module_id=module,
            tls_size=tls_size,
            tls_align=tls_align,
            tls_offset=tls_offset,
        )

    def _segment(self, record: tuple[int, ...], span: int) -> Segment:
        offset, memory_size, file_size, protection, _ = record
        if offset + memory_size > span or file_size > memory_size:
            raise damaged(f"a segment of {memory_size} bytes at {offset:#x} is larger than its object")
        return Segment(offset, memory_size, file_size, protection)

    def _placements(self, objects: tuple[Object, ...]) -> dict[int, list[Placement]]:
        """By rank; what concerns single variables comes first."""
        found: dict[int, list[Placement]] = defaultdict(list)
        tables = self._raw.tables
        for rank, index, original, size, storage, slot in tables["redirections"].records("redirections"):
            found[rank].append(Redirect(index, original, size, storage, slot))
        for rank, index, base in tables["copies"].records("copies"):
            if index >= len(objects):
                raise damaged(f"a copy is of object {index}, of {len(objects)}")
            region(base, objects[index].span, f"a copy of rank {rank}")
            found[rank].append(Rebase(index, objects[index].base, objects[index].span, base))
        for rank, index, kind, level, address, size in tables["tls_blocks"].records("tls_blocks"):
            whose = None if index == layout.NONE else index
            found[rank].append(TlsBlock(whose, address, size, kind == _THREAD_POINTER, level))
        for rank, index, type_name, _, address in tables["roots"].records("roots"):
            found[rank].append(Root(index, self._string(type_name), address))
        return found

    def _ranks(self, placements: dict[int, list[Placement]], heap: Optional[Region]) -> list[Rank]:
        return [self._rank(record, placements, heap) for record in self._raw.tables["ranks"].records("ranks")]

    def _rank(self, record: tuple[int, ...], placements: dict[int, list[Placement]], heap: Optional[Region]) -> Rank:
        number, state, element, thread, context, range_start, range_size = record[:7]
        stack_start, stack_size, heap_start, heap_size, heap_used, space, call, peer, tag = record[7:16]
        communicator, switches = record[16:]
        if state >= len(STATES) or number < 0:
            raise damaged(f"rank {number} has state {state}")
        placed = placements.get(number, [])
        if heap is not None and heap_start:
            placed = [*placed, Rebase(None, heap.start, heap.size, heap_start)]
        if space:
            placed = [*placed, Alias(0, _TOP, space)]
        return Rank(
            rank=number,
            state=STATES[state],
            processing_element=element,
            kernel_thread=thread,
            context=self._context(STATES[state], context),
            stack=region(stack_start, stack_size, "a stack") if stack_size else Absent("its runtime tells of none"),
            heap=region(heap_start, heap_size, "a heap") if heap_start else Absent("it has no heap of its own"),
            heap_used=heap_used if heap_start else Absent("it has no heap of its own"),
            range=region(range_start, range_size, "a range") if range_size else Absent("its runtime tells of none"),
            waiting=Waiting(self._calls[call], peer, tag, communicator) if 0 < call < len(self._calls) else None,
            switches=switches,
            placements=tuple(placed),
            evidence=self._evidence,
            address_space=space,
        )

    def _context(self, state: str, context: int) -> Union[int, Absent]:
        if state in (READY, BLOCKED) and context:
            return context
        return Absent(f"it is {state}")

    def _layout(self) -> tuple[RegisterRule, ...]:
        return tuple(
            RegisterRule(number, rule == _SAVED, offset)
            for number, rule, offset in self._raw.tables["context_registers"].records("context_registers")
        )
