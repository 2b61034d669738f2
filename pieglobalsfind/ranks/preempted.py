"""Variables that an object has and does not use: the dynamic linker has bound their names to another object's.

Takes a target, the objects of which ranks have copies, and a rank; gives where the rank's code finds these variables.
They are C++ inline variables and statics of templates in a header that a program and its library both include, and
variables of a library for which the program has one of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pieglobalsfind.decoders.gnu_unique import STB_GNU_UNIQUE, named_variables
from pieglobalsfind.elf.file import PF_W, PT_GNU_RELRO
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Object, Rank, Redirect
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.target import Target, read_many

STB_GLOBAL, STB_WEAK = 1, 2
BOUND_BY_NAME = frozenset({STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE})


@dataclass(frozen=True)
class Preempted:
    """A variable by its address in the original of its object; `used`: of the one in use, in the original of `user`."""

    original: int
    size: int
    used: int
    user: Object


def preempted(target: Target, objects: Sequence[Object], elf_object: Object) -> tuple[Preempted, ...]:
    """Those of an object, if another of `objects` has the one in use. What can't be written to is left out."""
    try:
        loaded = LoadedElf(target.read, elf_object.base)
        named = list(named_variables(target, loaded, BOUND_BY_NAME))
    except (MemoryUnreadable, ObjectFileError):
        return ()
    words = read_many(target, [(elf_object.base + variable.slot, 8) for variable in named])
    by_original: dict[int, Preempted] = {}
    for variable, word in zip(named, words):
        original = elf_object.base + variable.variable
        used = int.from_bytes(word, "little") - variable.addend if word else original
        user = next((other for other in objects if 0 <= used - other.base < other.span), elf_object)
        if user.index != elf_object.index and is_written(loaded, original):
            by_original[original] = Preempted(original, variable.size, used, user)
    return tuple(by_original.values())


def is_written(loaded: LoadedElf, address: int) -> bool:
    """Whether the program may write to an address: not where the dynamic linker alone does, as tables of functions."""
    places = [header for header in loaded.program_headers if header.vaddr <= address - loaded.load_bias < header.end]
    return any(header.flags & PF_W for header in places) and all(header.type != PT_GNU_RELRO for header in places)


def with_preempted(rank: Rank, elf_object: Object, variables: Sequence[Preempted]) -> Rank:
    """The rank with the object's variables where its code finds them."""
    places = [(variable, data_place(rank, variable.user, variable.used)) for variable in variables]
    moved = tuple(
        Redirect(elf_object.index, variable.original, variable.size, place, 0)
        for variable, place in places
        if isinstance(place, int)
    )
    return replace(rank, placements=(*moved, *rank.placements)) if moved else rank
