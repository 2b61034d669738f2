"""Whose an address is: at every edge of every part of an image, and for ten thousand ranks."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import MIGRATED_OUT, Owner, RankTable, Rebase, Region, TlsBlock
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.target import MemoryMapping
from tests.pieglobalsfind.decoders.test_registry import FIRST, LIBRARY, PROGRAM, RANGE, rank, registry, target_of
from tests.support.steps import steps_of

HOST = MemoryMapping(0x7F1000002000, 0x7F1000004000, True, False, True, 0x2000, "/usr/bin/rankrun")
HOST_START = MemoryMapping(0x7F1000000000, 0x7F1000002000, True, False, False, 0, "/usr/bin/rankrun")
GUARD = MemoryMapping(0x7F1000010000, 0x7F1000011000, False, False, False, 0, "")
ANONYMOUS = MemoryMapping(0x7F1000020000, 0x7F1000021000, True, True, False, 0, "")
MAPS = (HOST_START, HOST, GUARD, ANONYMOUS)


def table(**fields: object) -> RankTable:
    written = registry().changed(
        constructor_heap=(0x300000000000, 0x4000), blocks=((0x300000000100, 32), (0x300000000200, 16)), **fields
    )
    return decode(target_of(written))


def owner(address: int, **fields: object) -> Owner:
    return Translator(table(**fields), MAPS).owner(address)


def brute(rank_table: RankTable, address: int) -> tuple[str, object]:
    """(kind, rank) by asking every part of every image in turn, the innermost first."""
    for one in rank_table.ranks:
        for part in one.placements:
            if isinstance(part, Rebase) and part.object is not None and part.copy <= address < part.copy + part.size:
                offset = address - part.copy
                inside = [s for s in rank_table.objects[part.object].segments if s.offset <= offset < s.end]
                kinds = ["code" if s.executable else "data" if s.writable else "rodata" for s in inside]
                return (kinds or ["range"])[0], one.rank
        for kind, region in (("stack", one.stack), ("heap", one.heap), ("range", one.range)):
            if isinstance(region, Region) and address in region:
                return kind, one.rank
    for known_object in rank_table.objects:
        offset = address - known_object.base
        if any(s.offset <= offset < s.end for s in known_object.segments):
            return "original", None
    return "other", None


def edges(rank_table: RankTable) -> Iterator[int]:
    """Each place where something begins or ends, and its neighbours."""
    for one in rank_table.ranks:
        for region in (one.stack, one.heap, one.range):
            if isinstance(region, Region):
                yield from (region.start, region.end)
        for part in one.placements:
            if isinstance(part, Rebase):
                yield from (part.copy, part.copy + part.size)
                for s in rank_table.objects[part.object].segments if part.object is not None else ():
                    yield from (part.copy + s.offset, part.copy + s.end)
    for known_object in rank_table.objects:
        for s in known_object.segments:
            yield from (known_object.base + s.offset, known_object.base + s.end)


def test_every_edge() -> None:
    rank_table = table()
    translator = Translator(rank_table, MAPS)
    places = {edge + step for edge in edges(rank_table) for step in (-1, 0, 1)}
    assert len(places) > 100
    for address in sorted(places):
        found = translator.owner(address)
        kind, number = brute(rank_table, address)
        assert (found.kind, found.rank) == (kind, number) or kind == "other", hex(address)
        if kind == "other":
            assert found.kind in ("unmapped", "original") and found.rank is None, hex(address)


def test_in_a_copy() -> None:
    found = owner(FIRST + RANGE + 0x10000 + 0x1234)
    assert (found.kind, found.rank, found.object, found.offset) == ("code", 1, 0, 0x1234)
    assert found.original == PROGRAM.base + 0x1234
    gap = owner(FIRST + RANGE + 0x10000 + 0x900)
    assert (gap.kind, gap.rank, gap.object) == ("range", 1, 0)
    assert "between the segments" in gap.reason


def test_in_an_original() -> None:
    found = owner(LIBRARY.base + 0x10)
    assert (found.kind, found.rank, found.object, found.original) == ("original", None, 1, LIBRARY.base + 0x10)


def test_stack_and_heap() -> None:
    stack = owner(FIRST + 0x1008)
    assert (stack.kind, stack.rank, stack.offset) == ("stack", 0, 8)
    assert owner(FIRST + 0xFFF).reason == "reserved for the rank, not in use or a guard page"


def test_replayed_heap() -> None:
    """Only what was a constructor's block has an original."""
    heap = FIRST + 2 * RANGE + 0x100000
    inside = owner(heap + 0x108)
    assert (inside.kind, inside.rank, inside.offset, inside.original) == ("heap", 2, 0x108, 0x300000000108)
    assert owner(heap + 0x120).original == 0
    assert owner(heap + 0x210).original == 0
    assert owner(heap + 0x20F).original == 0x30000000020F
    original = owner(0x300000000108)
    assert (original.kind, original.rank, original.offset) == ("original", None, 0x108)


def test_thread_local_blocks_and_redirected_variables() -> None:
    heap = FIRST + RANGE + 0x100000
    blocks = ((1, 0xFFFFFFFF, 1, 0, heap + 0x2000, 0x1000), (2, 1, 2, 0, 0x7E3000, 64))
    moved = ((0, 0, PROGRAM.base + 0x4010, 8, 0x7E5000, 0),)
    static = owner(heap + 0x2000 - LIBRARY.tls_offset + 5, tls_blocks=blocks)
    assert (static.kind, static.rank, static.object, static.offset) == ("tls", 1, 1, 5)
    rest = owner(heap + 0x1008, tls_blocks=blocks)
    assert (rest.kind, rest.rank, rest.object, rest.offset) == ("tls", 1, None, 8)
    assert owner(heap + 0x2000, tls_blocks=blocks).kind == "heap"
    own = owner(0x7E3008, tls_blocks=blocks)
    assert (own.kind, own.rank, own.object, own.offset) == ("tls", 2, 1, 8)
    apart = owner(0x7E5004, redirections=moved)
    assert (apart.kind, apart.rank, apart.object, apart.offset) == ("data", 0, 0, 0x4014)
    assert apart.original == PROGRAM.base + 0x4014


def test_many_variables_apart_within_a_heap() -> None:
    """Behind hundreds of them the heap goes on."""
    heap = FIRST + 0x100000
    moved = tuple((0, 0, PROGRAM.base + 0x4000 + 8 * i, 8, heap + 16 * i, 0) for i in range(500))
    assert owner(heap + 16 * 499 + 7, redirections=moved).kind == "data"
    assert owner(heap + 16 * 499 + 8, redirections=moved).kind == "heap"
    assert owner(heap + 0xFFFF, redirections=moved).kind == "heap"


def test_the_process() -> None:
    host = owner(HOST.start + 4)
    assert (host.kind, host.rank, host.object, host.offset, host.path) == ("runtime", None, None, 0x2004, HOST.path)
    assert owner(ANONYMOUS.start).kind == "runtime"
    assert "anonymous" in owner(ANONYMOUS.start).reason


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (0, "null pointer"),
        (0x40, "null pointer"),
        (GUARD.start, "guard page"),
        (HOST.end + 7, "7 bytes after the end of /usr/bin/rankrun"),
        (0x600000000000, "it is not mapped"),
        (0xDEADBEEFDEADBEEF, "not canonical"),
        (1 << 64, "no such address"),
        (-1, "no such address"),
    ],
)
def test_nobodys(address: int, reason: str) -> None:
    found = owner(address)
    assert (found.kind, found.rank) == ("unmapped", None)
    assert reason in found.reason


def test_migrated_out() -> None:
    """Its range is reserved still, and what lies there is not the rank's image."""
    rank_table = table(ranks=(rank(0), rank(1, state=4), rank(2)))
    assert rank_table.ranks[1].state == MIGRATED_OUT
    found = Translator(rank_table, MAPS).owner(FIRST + RANGE + 0x10000)
    assert (found.kind, found.rank) == ("range", 1)
    assert "migrated" in found.reason


def test_backwards() -> None:
    translator = Translator(table(), MAPS)
    assert translator.rank_address(2, 0, 0x4010) == FIRST + 2 * RANGE + 0x10000 + 0x4010
    assert translator.original(FIRST + 2 * RANGE + 0x10000 + 0x4010) == PROGRAM.base + 0x4010
    assert translator.original(HOST.start) == HOST.start
    for number, place in ((9, 0), (0, PROGRAM.span)):
        with pytest.raises(UsageError, match=f"rank {number} has no copy of /home/me/solver"):
            translator.rank_address(number, 0, place)


def known_of(count: int) -> RankTable:
    rank_table = decode(target_of(registry(count)))
    assert not any(isinstance(part, TlsBlock) for part in rank_table.ranks[0].placements)
    return rank_table


def test_ten_thousand_ranks() -> None:
    translator, chance = Translator(known_of(10_000), MAPS), random.Random(1)
    places = [FIRST + chance.randrange(10_000) * RANGE + chance.randrange(0x110000) for _ in range(20_000)]
    for place in places:
        assert translator.owner(place).rank == (place - FIRST) // RANGE


def test_who_is_asked_about_is_found_as_soon_among_many() -> None:
    """Whatever their number; each rank adds the same to what is made once."""

    def steps(count: int) -> tuple[float, int]:
        known, chance = known_of(count), random.Random(1)
        translator = Translator(known, MAPS)
        made = steps_of(lambda: translator.owner(FIRST)) / count
        places = [FIRST + chance.randrange(count) * RANGE + chance.randrange(0x110000) for _ in range(1000)]
        return made, steps_of(lambda: [translator.owner(place) for place in places])

    for few, many in zip(steps(200), steps(2000)):
        assert 0 < many < 1.1 * few
