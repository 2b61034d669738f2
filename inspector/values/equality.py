"""Says whether two ranks hold the same in a variable that is too large to be shown whole.

Takes a variable's type and bytes; gives a digest that is equal when the bytes mean the same: a pointer into the rank's
own image counts as the place it means, not as the address. It decides nothing about what is shown.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Optional

from pieglobalsfind.dwarf.types import Array, Struct, TypeTable, Void
from pieglobalsfind.model import Rank, Rebase, Region
from pieglobalsfind.values.scalar_text import MOST_ELEMENTS
from pieglobalsfind.values.variable_text import DEEPEST

from .layout import WORD, address_offsets, is_told_whole, leaves_at


def shown_whole(types: TypeTable, index: int, depth: int = 0) -> bool:
    """Whether the text of such a variable leaves nothing out, so that equal texts mean equal values."""
    bare = types.strip(index)
    if depth > DEEPEST:
        return False
    if isinstance(bare, Struct):
        few = not bare.opaque and len(bare.members) <= MOST_ELEMENTS
        return few and all(shown_whole(types, member.type, depth + 1) for member in bare.members)
    if isinstance(bare, Array):
        element = types.size(bare.element)
        few = element > 0 and bare.size // element <= MOST_ELEMENTS
        return bare.data_location is None and few and shown_whole(types, bare.element, depth + 1)
    return not isinstance(bare, Void)


class ValueDigests:
    """Digests of one variable's bytes on different ranks."""

    def __init__(self, types: TypeTable, index: int) -> None:
        self._types = types
        self._index = index
        self._is_told = is_told_whole(types, index)
        self._pointers = address_offsets(types, index)

    def digest(self, rank: Rank, data: bytes) -> bytes:
        """Equal for ranks whose bytes mean the same; padding counts (`first_difference` passes over it)."""
        return hashlib.blake2b(self._neutral(rank, data), digest_size=16).digest()

    def _neutral(self, rank: Rank, data: bytes) -> bytes:
        """The bytes with every pointer into the rank's own image replaced by what it means."""
        if not self._pointers:
            return data
        changed = bytearray(data)
        homes = list(own_places(rank))
        for offset in self._pointers:
            if offset + WORD > len(changed):
                break
            (value,) = struct.unpack_from("<Q", changed, offset)
            for start, end, meant in homes:
                if value and start <= value <= end:
                    struct.pack_into("<Q", changed, offset, (meant + value - start) & (1 << 64) - 1)
                    break
        return bytes(changed)

    def first_difference(
        self, rank: Rank, one_data: bytes, other: Rank, other_data: bytes, start: int = 0
    ) -> Optional[str]:
        """The path of the first member or element in which two ranks differ, None if only padding does.

        The data are of the variable from byte `start` on, which has to be 0 for one with pointers.
        """
        left, right = self._neutral(rank, one_data), self._neutral(other, other_data)
        for block in range(0, max(len(left), len(right)), 4096):
            if left[block : block + 4096] == right[block : block + 4096]:
                continue
            for offset in range(block, min(block + 4096, len(left), len(right))):
                if left[offset] != right[offset]:
                    leaves = leaves_at(self._types, self._index, start + offset, 1)
                    if leaves or not self._is_told:
                        return leaves[0].path if leaves else ""
        return None


def own_places(rank: Rank) -> Iterator[tuple[int, int, int]]:
    """(start, end, what start means): the originals for copies, far apart numbers for heap and stack."""
    for placement in rank.placements:
        if isinstance(placement, Rebase):
            yield placement.copy, placement.copy + placement.size, placement.original
    for number, region in enumerate((rank.heap, rank.stack)):
        if isinstance(region, Region):
            yield region.start, region.end, (number + 1) << 56
