"""Complete a hook's registry by the runtime's own data.

Takes a target and the table of its registry; gives the table, completed. What the registry says is replaced only where
AMPI's hook module knows less of a rank's image: it names no swapped globals, and of copies no thread-local variables
for which the system's loader has made no block when a rank begins.
"""

from __future__ import annotations

from dataclasses import replace

from pieglobalsfind.decoders.registry.external_state import MAY_RUN, NO_CONTEXT
from pieglobalsfind.decoders.running import with_running
from pieglobalsfind.elf.loaded import loaded_at
from pieglobalsfind.model import MIGRATED_OUT, Absent, Rank, RankTable, Rebase, TlsBlock
from pieglobalsfind.target import Target

LACKING = (MAY_RUN, NO_CONTEXT)


def completed(target: Target, table: RankTable) -> RankTable:
    """The table as it is if it lacks nothing."""
    is_swapped = _is_swapped(target, table)
    with_images = not table.objects or is_swapped or _lacks_blocks(table)
    if with_images or any(rank.context in LACKING for rank in table.ranks):
        from pieglobalsfind.decoders.ampi import decode as ampi

        rank_table = ampi.decode(target)
        if rank_table is not None and rank_table.evidence.tier == ampi.EVIDENCE.tier:
            table = _filled(table, rank_table, with_images)
    if is_swapped and table.method == "none":
        from pieglobalsfind.decoders.ampi.swapped_globals import STRIPPED, UNKNOWN

        table = replace(table, warnings=(*table.warnings, UNKNOWN.format(STRIPPED)))
    if table.runtime.startswith("AMPI"):
        from pieglobalsfind.decoders.ampi.unrewritten_got import as_used

        table = as_used(target, table)
    return with_running(table, target.threads())


def _lacks_blocks(table: RankTable) -> bool:
    """Whether ranks have copies of a program with thread-local variables, and no block of it is known."""
    placements = [placement for rank in table.ranks for placement in rank.placements]
    with_blocks = {placement.object for placement in placements if isinstance(placement, TlsBlock)}
    copied = {placement.object for placement in placements if isinstance(placement, Rebase)}
    return None not in with_blocks and any(
        elf_object.is_program and elf_object.tls_size and elf_object.index in copied - with_blocks
        for elf_object in table.objects
    )


def _is_swapped(target: Target, table: RankTable) -> bool:
    """Whether AMPI swaps globals, which the hook module calls no method."""
    if table.method != "none" or not table.runtime.startswith("AMPI"):
        return False
    from pieglobalsfind.decoders.ampi.runtime_variables import SWAPS

    loaded = loaded_at(target.read, table.objects[0].base) if table.objects else None
    return loaded is not None and loaded.symbol(SWAPS) is not None


def _filled(table: RankTable, rank_table: RankTable, with_images: bool) -> RankTable:
    by_number = {rank.rank: rank for rank in rank_table.ranks}
    here = {rank.rank for rank in table.ranks if rank.state != MIGRATED_OUT}
    with_images = with_images and bool(rank_table.objects) and here <= by_number.keys()
    ranks = tuple(_with(rank, by_number.get(rank.rank), with_images) for rank in table.ranks)
    return replace(
        table,
        ranks=ranks,
        objects=rank_table.objects if with_images else table.objects,
        method=rank_table.method if with_images else table.method,
        warnings=tuple(dict.fromkeys((*table.warnings, *rank_table.warnings))) if with_images else table.warnings,
        context_layout=table.context_layout or rank_table.context_layout,
        entry_function=table.entry_function or rank_table.entry_function,
        entry_function_size=table.entry_function_size or rank_table.entry_function_size,
    )


def _with(rank: Rank, decoded: object, with_images: bool) -> Rank:
    if rank.state == MIGRATED_OUT:
        return replace(rank, placements=()) if with_images else rank
    if not isinstance(decoded, Rank):
        return rank
    if rank.context in LACKING:
        rank = replace(rank, state=decoded.state, context=decoded.context, kernel_thread=decoded.kernel_thread)
    heap = decoded.heap if isinstance(rank.heap, Absent) or with_images else rank.heap
    return replace(rank, heap=heap, placements=decoded.placements if with_images else rank.placements)
