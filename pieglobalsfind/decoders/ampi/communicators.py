"""The communicators of AMPI's ranks, and which ranks of MPI_COMM_WORLD each has.

Takes a rank's ampiParent; gives the members by AMPI's numbers. Each rank has a table of its own, in which a number may
mean another communicator than in another rank's. A table is believed if it has MPI_COMM_WORLD, as many communicators as
it says, and each under the number that this one has in itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Optional

from pieglobalsfind.decoders.ampi.elements import beginning
from pieglobalsfind.decoders.mpi_constants import AMPI
from pieglobalsfind.target import Target, read_or_none

PARENT_SIZE = 0x2000  # bytes that are searched for the table: ampiParent of Charm++ 8 has 4,736
# std::unordered_map of libstdc++: buckets, their number, the first node, the number of nodes
TABLE = struct.Struct("<4Q")
# A node: the next one, the number; ampiCommStruct of Charm++ 8: its number, array, size, kind; two groups
NODE = struct.Struct("<Qi4x3iB3x")
GROUP = struct.Struct("<i4x3Q8x")  # a size, or -1 and a vector of ranks
NODE_SIZE = NODE.size + 2 * GROUP.size
LISTED = -1  # in place of a group's size
MOST_COMMUNICATORS = 1 << 12
MOST_BUCKETS = 1 << 20

Members = Mapping[int, tuple[int, ...]]


def communicators_of(target: Target, parent: int, rank_count: int) -> Members:
    """The members of a rank's communicators by number, without those between two groups; empty without a table."""
    data = _without_others(beginning(target, parent, PARENT_SIZE))
    for at in range(0, len(data) - TABLE.size + 1, 8):
        _, buckets, first, count = TABLE.unpack_from(data, at)
        if 0 < count <= min(MOST_COMMUNICATORS, buckets) and buckets <= MOST_BUCKETS and first and first % 8 == 0:
            members = _members(target, first, count, rank_count)
            if members is not None:
                return members
    return {}


def _without_others(data: bytes) -> bytes:
    """As far as the next object of the same class, which may follow and has a table of its own."""
    ends = (at for at in range(8, len(data), 8) if data[at : at + 8] == data[:8])
    return data[: next(ends, len(data))]


def _members(target: Target, node: int, count: int, rank_count: int) -> Optional[Members]:
    """Those of so many communicators in a chain of nodes; None if it is none."""
    numbers, members_of = set[int](), dict[int, tuple[int, ...]]()
    for _ in range(count):
        data = read_or_none(target, node, NODE_SIZE)
        if data is None:
            return None
        node, key, number, _, size, _ = NODE.unpack_from(data)
        if key != number or not 0 < size <= rank_count:
            return None
        numbers.add(number)
        group, others = (GROUP.unpack_from(data, NODE.size + GROUP.size * at) for at in range(2))
        members = _ranks(target, group, size)
        if others[0] <= 0 and others[1] == others[2] and members is not None and max(members) < rank_count:
            members_of[number] = members
    return members_of if node == 0 and len(numbers) == count and AMPI.world in numbers else None


def _ranks(target: Target, group: tuple[int, ...], size: int) -> Optional[tuple[int, ...]]:
    count, begin, end, _ = group
    if count != LISTED:
        return tuple(range(size)) if count == size else None
    data = read_or_none(target, begin, 4 * size) if end - begin == 4 * size else None
    ranks = struct.unpack(f"<{size}i", data) if data is not None else ()
    return ranks if ranks and min(ranks) >= 0 else None
