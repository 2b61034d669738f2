"""Find the variables that PIEglobals did not privatize: a rank's own GOT still names the original's.

AMPI looks for pointers at every eighth byte from a segment's start: if that is not a multiple of 8, it meets none.
Code of a rank's copy then reaches a variable with external linkage by a word that names the original's. Takes a
target and its rank table; gives the table with a redirection for each such variable. Statics stay the copy's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pieglobalsfind.decoders.got_slots import Slot, variable_slots
from pieglobalsfind.model import Object, Rank, RankTable, Rebase, Redirect
from pieglobalsfind.target import Target, read_many

WORD = 8
WARNING = (
    "privatization of {} failed in {} of {} ranks: its writable segment begins at no multiple of 8, so AMPI has "
    "rewritten no pointer; the ranks' code uses the original's variables with external linkage, one for all"
)


def as_used(target: Target, table: RankTable) -> RankTable:
    """The table with variables where the ranks' code finds them; as it is where every segment is aligned."""
    for elf_object in table.objects:
        if table.method == "pie" and elf_object.privatized and is_unaligned(elf_object):
            table = _with_originals(target, table, elf_object)
    return table


def is_unaligned(elf_object: Object) -> bool:
    """Return whether a writable segment begins off a word's boundary."""
    return any(segment.writable and (elf_object.base + segment.offset) % WORD for segment in elf_object.segments)


def _with_originals(target: Target, table: RankTable, elf_object: Object) -> RankTable:
    slots = list(variable_slots(target, elf_object))
    ranks = tuple(_rank(target, elf_object, rank, slots) for rank in table.ranks)
    lost = sum(new is not old for new, old in zip(ranks, table.ranks))
    if not lost:
        return table
    warning = WARNING.format(elf_object.path.rpartition("/")[2], lost, len(ranks))
    return replace(table, ranks=ranks, warnings=(*table.warnings, warning))


def _rank(target: Target, elf_object: Object, rank: Rank, slots: Sequence[Slot]) -> Rank:
    copy = next(
        (
            placement.copy
            for placement in rank.placements
            if isinstance(placement, Rebase) and placement.object == elf_object.index
        ),
        None,
    )
    if copy is None:
        return rank
    words = read_many(target, [(copy + slot, WORD) for slot, _, _ in slots])
    in_original = (
        (elf_object.base + variable, size)
        for (_, variable, size), word in zip(slots, words)
        if word is not None and int.from_bytes(word, "little") == elf_object.base + variable
    )
    moved = tuple(
        Redirect(elf_object.index, start, size, start, 0, is_shared=True, is_failure=True)
        for start, size in _joined(in_original)
    )
    return replace(rank, placements=(*moved, *rank.placements)) if moved else rank


def _joined(extents: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(start, size), those that touch as one: AMPI's own are hundreds in a row."""
    begin = end = 0
    for start, size in sorted(set(extents)):
        if start != end:
            if end > begin:
                yield begin, end - begin
            begin = start
        end = max(end, start + size)
    if end > begin:
        yield begin, end - begin
