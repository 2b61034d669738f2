"""What a registry of a runtime's hook lacks, taken from the runtime's own data where that is to be had.

Takes a target and the table of its registry; gives the table, completed. What the registry says is never replaced.
"""

from __future__ import annotations

from dataclasses import replace

from pieglobalsfind.decoders.registry.external_state import MAY_RUN, NO_CONTEXT
from pieglobalsfind.decoders.running import with_running
from pieglobalsfind.model import MIGRATED_OUT, Absent, Rank, RankTable
from pieglobalsfind.target import Target

LACKING = (MAY_RUN, NO_CONTEXT)


def completed(target: Target, table: RankTable) -> RankTable:
    """The table as it is if it lacks nothing."""
    if not table.objects or any(rank.context in LACKING for rank in table.ranks):
        from pieglobalsfind.decoders.ampi import decode as ampi

        rank_table = ampi.decode(target)
        if rank_table is not None and rank_table.evidence.tier == ampi.EVIDENCE.tier:
            table = _filled(table, rank_table)
    if table.runtime.startswith("AMPI"):
        from pieglobalsfind.decoders.ampi.lost_privatization import as_used

        table = as_used(target, table)
    return with_running(table, target.threads())


def _filled(table: RankTable, rank_table: RankTable) -> RankTable:
    known = {rank.rank: rank for rank in rank_table.ranks}
    with_images = not table.objects
    ranks = tuple(_with(rank, known.get(rank.rank), with_images) for rank in table.ranks)
    return replace(
        table,
        ranks=ranks,
        objects=table.objects or rank_table.objects,
        method=table.method or rank_table.method,
        context_layout=table.context_layout or rank_table.context_layout,
        entry_function=table.entry_function or rank_table.entry_function,
        entry_function_size=table.entry_function_size or rank_table.entry_function_size,
    )


def _with(rank: Rank, found: object, with_images: bool) -> Rank:
    if not isinstance(found, Rank) or rank.state == MIGRATED_OUT:
        return rank
    if rank.context in LACKING:
        rank = replace(rank, state=found.state, context=found.context, kernel_thread=found.kernel_thread)
    heap = found.heap if isinstance(rank.heap, Absent) else rank.heap
    return replace(rank, heap=heap, placements=found.placements if with_images else rank.placements)
