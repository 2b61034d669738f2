"""Variables of which the system's loader keeps one instance, however many copies of their file it loads.

Takes a target, an object and where its copies are; gives each rank's redirections. These are C++ inline variables and
statics of templates and inline functions (STB_GNU_UNIQUE), which code finds by a word that the loader has relocated.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pieglobalsfind.elf.file import DT_SYMTAB, SYMBOL_SIZE
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Object, Placement, Rebase, Redirect
from pieglobalsfind.target import Target, read_many

STB_GNU_UNIQUE, STT_OBJECT = 10, 1


@dataclass(frozen=True)
class Named:
    """A word that names a variable; both by their distance from the object's base."""

    slot: int
    addend: int
    is_got: bool
    variable: int
    size: int


def with_unique(
    target: Target, objects: Sequence[Object], placements: Mapping[int, tuple[Placement, ...]]
) -> dict[int, tuple[Placement, ...]]:
    """The placements of ranks whose copies are files in one namespace: the special goes before the general."""
    moved_placements = dict(placements)
    for elf_object in objects:
        copies = {
            rank: rebase.copy
            for rank, held in placements.items()
            for rebase in held
            if isinstance(rebase, Rebase) and rebase.object == elf_object.index
        }
        for rank, moved in redirections(target, elf_object, LoadedElf(target.read, elf_object.base), copies).items():
            moved_placements[rank] = (*moved, *moved_placements[rank])
    return moved_placements


def redirections(
    target: Target, elf_object: Object, loaded: LoadedElf, copies: Mapping[int, int]
) -> dict[int, tuple[Redirect, ...]]:
    """By rank, where its unique variables are; `copies` are where the ranks' copies of the object begin."""
    named = list(named_variables(target, loaded, frozenset({STB_GNU_UNIQUE})))
    if not named:
        return dict.fromkeys(copies, ())
    words = {
        rank: read_many(target, [(copy + variable.slot, 8) for variable in named]) for rank, copy in copies.items()
    }
    storage = {
        rank: [
            int.from_bytes(word, "little") - variable.addend if word else None
            for word, variable in zip(rank_words, named)
        ]
        for rank, rank_words in words.items()
    }
    users = Counter(at for places in storage.values() for at in set(places))
    return {
        rank: tuple(
            Redirect(
                elf_object.index,
                elf_object.base + variable.variable,
                variable.size,
                at,
                copies[rank] + variable.slot if variable.is_got else 0,
                users[at] > 1,
            )
            for variable, at in zip(named, places)
            if at is not None
        )
        for rank, places in storage.items()
    }


def relocated(
    target: Target, loaded: LoadedElf, kinds: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int, int, int], tuple[int, ...]]]:
    """Relocations of some kinds, each with its symbol's entry in .dynsym, zeros if that can't be read."""
    try:
        rows = [row for row in loaded.relocations() if row[1] in kinds]
    except MemoryUnreadable:
        return
    start = loaded.table(DT_SYMTAB)
    symbols = read_many(target, [(start + SYMBOL_SIZE * symbol, SYMBOL_SIZE) for _, _, symbol, _ in rows])
    yield from zip(rows, (struct.unpack("<IBBHQQ", entry or bytes(SYMBOL_SIZE)) for entry in symbols))


def named_variables(target: Target, loaded: LoadedElf, bindings: Collection[int]) -> Iterator[Named]:
    """The object's own variables that words of it name, of these bindings (STB_GLOBAL and the like)."""
    kinds = loaded.header.processor.relocations
    for (offset, kind, _, addend), entry in relocated(target, loaded, (kinds.absolute, kinds.glob_dat)):
        _, info, _, section, value, length = entry
        if section and info >> 4 in bindings and info & 0xF == STT_OBJECT and offset < loaded.span:
            yield Named(offset - loaded.low, addend, kind == kinds.glob_dat, value - loaded.low, length)
