"""`rank info [N]`: everything that is known of a rank: copies, stack, heap, context, how it was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from pieglobalsfind.debugger.declare import Block, Column, Debugger, Table, TextBlock
from pieglobalsfind.debugger.wording import element_text, file_name, state_text
from pieglobalsfind.decoders.ampi.gap_bytes import gap_bytes
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Absent, Rank, Rebase, Redirect, Region, Root, TlsBlock
from pieglobalsfind.session.process_view import ProcessView

RANKS_OWN = 0  # the level of a thread-local block that no other rank uses
COPIES = (Column("copy of"), Column("start"), Column("end"), Column("original"), Column("build-id"))


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Print all that is known of a rank."""
    job = debugger.job()
    rank = job.shown(number(debugger, text))
    moment = job.of(rank.rank)
    yield TextBlock(f"Rank {rank.rank} of {moment.table.rank_count}, {state_text(rank)}{job.place(rank.rank)}")
    yield TextBlock("\n".join(f"  {name:<10}{value}" for name, value in facts(moment, rank)))
    copies = tuple(_copy_row(moment, placement) for placement in rank.placements if isinstance(placement, Rebase))
    if copies:
        yield Table(COPIES, copies)


def number(debugger: Debugger, text: str) -> int:
    """Return the rank that is named, or the selected one."""
    word = text.strip()
    if word.isdecimal() and len(word) <= 10:
        return int(word)
    if word:
        raise UsageError(f"{word!r} is not a rank", "give one number, or nothing for the selected rank")
    if debugger.selected is None:
        raise UsageError(f"no rank is selected because {debugger.reason}", "give its number: rank info 3")
    return debugger.selected


def facts(moment: ProcessView, rank: Rank) -> Iterator[tuple[str, str]]:
    """Yield what is known of a rank, by name."""
    table = moment.table
    yield "method", f"{table.method}, runtime {table.runtime}, process {table.process_index} of {table.process_count}"
    yield "element", f"{element_text(rank)}, thread {rank.kernel_thread or 'unknown'}"
    yield "switches", str(rank.switches)
    yield "context", _address_text(rank.context)
    yield "range", _region_text(rank.range)
    yield "stack", _region_text(rank.stack)
    yield (
        "heap",
        _region_text(rank.heap) + ("" if isinstance(rank.heap, Absent) else f", {rank.heap_used} bytes in use"),
    )
    for placement in rank.placements:
        if isinstance(placement, TlsBlock):
            kind = "thread pointer" if placement.is_thread_pointer else "block"
            yield "TLS", f"{kind} {placement.address:#x}, {placement.size} bytes"
        elif isinstance(placement, Root):
            yield "globals", f"struct {placement.type_name} at {placement.address:#x}"
    redirected = sum(isinstance(placement, Redirect) for placement in rank.placements)
    if redirected:
        yield "redirected", f"{redirected} variables"
    yield "payload", payload_text(moment, rank)
    yield "known by", f"{rank.evidence.tier} ({rank.evidence.source})"


def payload_text(moment: ProcessView, rank: Rank) -> str:
    """The rank's own bytes, which move where ranks migrate: `8459145 bytes: copies 5001, stack 8388608, ...`."""
    copies = sum(copy_size(moment, placement) for placement in rank.placements if isinstance(placement, Rebase))
    tls = sum(
        placement.size
        for placement in rank.placements
        if isinstance(placement, TlsBlock) and placement.level == RANKS_OWN
    )
    parts = {
        "copies": copies,
        "stack": rank.stack,
        "heap": rank.heap,
        "TLS": tls,
        "gaps": gap_bytes(moment.table, rank),
    }
    sizes = {name: part.size if isinstance(part, Region) else part for name, part in parts.items()}
    known_sizes = {name: size for name, size in sizes.items() if isinstance(size, int) and size}
    unknown = "".join(f", {name} unknown" for name, size in sizes.items() if isinstance(size, Absent))
    listed = ", ".join(f"{name} {size}" for name, size in known_sizes.items())
    return f"{sum(known_sizes.values())} bytes" + (f": {listed}" if listed else "") + unknown


def copy_size(moment: ProcessView, copy: Rebase) -> int:
    """Of a copy's segments, but for what all ranks have from a file; constructors' blocks are in the heap."""
    if copy.object is None:
        return 0
    segments = moment.table.objects[copy.object].segments
    return sum(
        segment.memory_size
        for segment in segments
        if segment.writable or not moment.translator.is_of_file(copy.copy + segment.offset)
    )


def _address_text(value: Union[int, Absent]) -> str:
    return str(value) if isinstance(value, Absent) else f"{value:#x}"


def _region_text(region: Union[Region, Absent]) -> str:
    if isinstance(region, Absent):
        return str(region)
    return f"{region.start:#x}-{region.end:#x}, {region.size} bytes"


def _copy_row(moment: ProcessView, rebase: Rebase) -> tuple[str, ...]:
    ends = (f"{rebase.copy:#x}", f"{rebase.copy + rebase.size:#x}", f"{rebase.original:#x}")
    if rebase.object is None:
        return ("constructors' heap", *ends, "")
    elf_object = moment.table.objects[rebase.object]
    return (file_name(elf_object), *ends, elf_object.build_id.hex()[:12])
