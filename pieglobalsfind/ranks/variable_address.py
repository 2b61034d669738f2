"""Where a rank has its own instance of a variable, by the rank's placements.

Takes a rank, an object and a variable of the object's debug information; gives an address, or why there is none. It
reads no memory. Where a rank's code uses another instance than its copy has, the address is that of the one in use; the
other one is its nominal place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Optional, Union

from pieglobalsfind.decoders.registry.live_state import GONE
from pieglobalsfind.model import MIGRATED_OUT, Absent, Object, Rank, Rebase, Redirect, Root, TlsBlock, Unplaced

if TYPE_CHECKING:
    from pieglobalsfind.dwarf.types import Variable


def place(rank: Rank, elf_object: Object, variable: Variable) -> Union[int, Absent]:
    """Where the rank's instance of a variable lies."""
    from pieglobalsfind.dwarf.types import ROOT  # late: who places no variables has no use for types

    if variable.storage == ROOT:
        return root_place(rank, elf_object, variable.name)
    if variable.tls_offset is not None:
        return thread_local_place(rank, elf_object, variable.tls_offset)
    return data_place(rank, elf_object, (variable.address or 0) + elf_object.load_bias)


def has_copy(rank: Rank, elf_object: Object) -> bool:
    """Whether a rank has a copy of an object: of libraries it has none under `fs`, for instance."""
    return any(isinstance(placement, Rebase) and placement.object == elf_object.index for placement in rank.placements)


def data_place(rank: Rank, elf_object: Object, original: int) -> Union[int, Absent]:
    """Where the rank has what the original has at an address: the first placement that covers it.

    A rank without a copy of the object uses the original itself.
    """
    is_copied = False
    for placement in rank.placements:
        if isinstance(placement, Redirect) and placement.object == elf_object.index and covers(placement, original):
            return placement.storage + original - placement.original
        if isinstance(placement, Unplaced) and placement.object == elf_object.index:
            return Absent(placement.reason, "the runtime's registry is damaged, or the rank is being made")
        if isinstance(placement, Rebase) and placement.object == elf_object.index:
            is_copied = True
            if placement.original <= original < placement.original + placement.size:
                return placement.copy + original - placement.original
    if rank.state == MIGRATED_OUT:
        return GONE
    return Absent("the rank has no copy of it") if is_copied else original


def nominal(rank: Rank) -> Rank:
    """The rank with each variable where its copy of the object has it, whether or not its code uses it there.

    What has no copy stays where it is: under some methods storage elsewhere is all that a rank has.
    """
    copied = {placement.object for placement in rank.placements if isinstance(placement, Rebase)}
    placements = tuple(
        placement
        for placement in rank.placements
        if not (isinstance(placement, Redirect) and placement.object in copied)
    )
    return rank if len(placements) == len(rank.placements) else replace(rank, placements=placements)


def nominal_place(rank: Rank, objects: Sequence[Object], address: int) -> Optional[int]:
    """Where the rank's copy has the variable that its code uses at an address; None if that is the same place."""
    for placement in rank.placements:
        if isinstance(placement, Redirect) and 0 <= address - placement.storage < placement.size:
            original = placement.original + address - placement.storage
            place = data_place(nominal(rank), objects[placement.object], original)
            return place if isinstance(place, int) and place != address else None
    return None


def runs_original(rank: Rank, elf_object: Object) -> bool:
    """Whether the rank's code uses the original beside the rank's copy: it calls functions there, too, by the words."""
    return any(
        isinstance(placement, Redirect) and placement.object == elf_object.index and placement.is_failure
        for placement in rank.placements
    )


def root_place(rank: Rank, elf_object: Object, type_name: str) -> Union[int, Absent]:
    """Where the rank keeps its struct of globals of that type."""
    for placement in rank.placements:
        if isinstance(placement, Root) and (placement.object, placement.type_name) == (elf_object.index, type_name):
            return placement.address
    return Absent("the rank has not said where it keeps them")


def covers(redirect: Redirect, original: int) -> bool:
    """Return whether a redirection is about an address in the original."""
    return redirect.original <= original < redirect.original + max(redirect.size, 1)


def thread_local_place(rank: Rank, elf_object: Object, offset: int) -> Union[int, Absent]:
    """The rank's instance of a thread-local variable, by its offset in the object's block."""
    block = tls_block(rank, elf_object)
    if block is None:
        return Absent("it is thread-local, and the rank has no such block of its own")
    return block + offset


def tls_block(rank: Rank, elf_object: Object) -> Optional[int]:
    """Where the rank's block of the object's thread-local variables begins, None if that is not known."""
    for placement in rank.placements:
        if isinstance(placement, TlsBlock) and placement.object in (None, elf_object.index):
            if not placement.is_thread_pointer:
                return placement.address
            if elf_object.tls_offset:
                return placement.address - elf_object.tls_offset
    return None


def is_shared(rank: Rank, elf_object: Object, variable: Variable) -> bool:
    """Whether the rank's instance is not its own: the original, or a block of its kernel thread or process.

    A struct of globals is where the rank says: one rank alone does not show whether another one has said the same.
    """
    from pieglobalsfind.dwarf.types import ROOT  # late: as in `place`

    if variable.storage == ROOT:
        return False
    if variable.tls_offset is not None:
        blocks = [
            placement
            for placement in rank.placements
            if isinstance(placement, TlsBlock) and placement.object in (None, elf_object.index)
        ]
        return bool(blocks) and blocks[0].level != 0
    original = (variable.address or 0) + elf_object.load_bias
    levels = [
        placement
        for placement in rank.placements
        if isinstance(placement, Redirect) and placement.object == elf_object.index
    ]
    for level in levels:
        if covers(level, original):
            return level.is_shared
    if any(
        isinstance(placement, (Rebase, Unplaced)) and placement.object == elf_object.index
        for placement in rank.placements
    ):
        return False  # also where the runtime has taken one rank's copy for the original
    return not rank.pages_of


def lies_apart(rank: Rank, elf_object: Object) -> bool:
    """Whether some of the object's variables are not where one distance from the original would put them."""
    redirected = any(
        isinstance(placement, Redirect) and placement.object == elf_object.index for placement in rank.placements
    )
    # A debugger asks the thread library for thread-local variables, which knows no copy that a runtime has made: it
    # would show another module's. Where a runtime publishes blocks, an object without one has no such variables yet.
    is_unknown_to_libc = any(
        isinstance(placement, TlsBlock) or (isinstance(placement, Rebase) and placement.object == elf_object.index)
        for placement in rank.placements
    )
    return redirected or (elf_object.tls_size > 0 and is_unknown_to_libc)
