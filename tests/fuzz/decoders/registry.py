"""The debug ABI's registry: a rank whose own records are sound has its true values or none."""

from __future__ import annotations

import struct

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Rank, RankTable
from pieglobalsfind.ranks.variable_address import data_place
from tests.fuzz.patches import damaged, written
from tests.support.fabricate.memory import Mapped, MemoryTarget
from tests.support.fabricate.registry import HEADER_SIZE, Object, Registry
from tests.support.fabricate.registry import Rank as Record

ADDRESS, FIRST, RANGE = 0x7E0000000000, 0x200000000000, 1 << 30
NAME = "/memfd:rank_debug_registry (deleted)"
PROGRAM = Object("/home/me/solver", 0x7F0000000000, 0x6000, ((0, 0x800, 0x800, 4), (0x4000, 0x2000, 0x100, 6)))
LIBRARY = Object("/lib/libf.so", 0x7F0000100000, 0x2000, ((0, 0x1000, 0x1000, 5),), flags=1)
RANKS = 3
VARIABLE = PROGRAM.base + 0x4010


def record(number: int) -> Record:
    start = FIRST + number * RANGE
    return Record(
        number,
        context=start + 0x7000,
        range=(start, RANGE),
        stack=(start + 0x1000, 0x8000),
        heap=(start + 0x100000, 0x10000),
    )


SOUND = Registry(
    ADDRESS,
    (PROGRAM, LIBRARY),
    tuple(record(number) for number in range(RANKS)),
    tuple((rank, number, FIRST + rank * RANGE + 0x10000 * (number + 1)) for rank in range(RANKS) for number in (0, 1)),
    calls=("", "MPI_Recv", "MPI_Barrier"),
    registers=((16, 1, 56), (7, 2, 64)),
)
BYTES, SIZE = SOUND.encode(), SOUND.size
RANK_ROW, COPY_ROW = struct.calcsize("<iIIIQQQQQQQQIIiiQQIIII"), struct.calcsize("<iIQ")
TABLES = [
    struct.unpack_from("<Q", BYTES, at)[0] - ADDRESS for at in range(HEADER_SIZE - 8 - 16 * 14, HEADER_SIZE - 8, 16)
]
RANK_TABLE = int(TABLES[3])  # after strings, objects and segments
COPY_TABLE = RANK_TABLE + RANKS * RANK_ROW
PARTS_END = COPY_TABLE + 2 * RANKS * COPY_ROW


def decoded(content: bytes) -> RankTable:
    return decode(MemoryTarget([Mapped(ADDRESS, SIZE, content, NAME)]))


def seeds() -> list[bytes]:
    """No damage, and one byte in each table."""
    return [b"", *(written([(offset, b"\x01\x00")]) for offset in range(0, len(BYTES), 40))]


def is_of(offset: int, rank: int) -> bool:
    """Whether a byte is what the rank's answers follow from: not if it is another rank's record or copy."""
    if RANK_TABLE <= offset < COPY_TABLE:
        return (offset - RANK_TABLE) // RANK_ROW == rank
    if COPY_TABLE <= offset < PARTS_END:
        return (offset - COPY_TABLE) // (2 * COPY_ROW) == rank
    return True


def facts(table: RankTable, rank: Rank) -> list[object]:
    return [rank.stack, rank.heap, rank.context, data_place(rank, table.objects[0], VARIABLE)]


TRUTH = decoded(BYTES)


def check(data: bytes) -> None:
    content, wrong = damaged(BYTES, data)
    try:
        table = decoded(content)
        ranks = list(table.ranks)
    except RanklensError:
        return
    for rank in ranks:
        if any(is_of(offset, rank.rank) for offset in wrong):
            facts(table, rank) if table.objects else None
            continue
        for true, told in zip(facts(TRUTH, TRUTH.ranks[rank.rank]), facts(table, rank)):
            assert told == true or isinstance(told, Absent), (rank.rank, true, told)
