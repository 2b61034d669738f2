"""AMPI's list of swapped globals on fabricated memory: sound, empty, damaged."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from pieglobalsfind.decoders.ampi import swapped_globals
from pieglobalsfind.decoders.ampi.images import AmpiImages
from pieglobalsfind.decoders.ampi.runtime_variables import find_loader
from pieglobalsfind.decoders.ampi.swapped_globals import INVALID, of_swap
from pieglobalsfind.decoders.ampi.threads import AmpiThread, find_threads
from pieglobalsfind.model import Redirect
from tests.support.fabricate.ampi import LOADER, MEGABYTE, RANKS, Job
from tests.support.fabricate.memory import MemoryTarget

LIST = 0x18000  # in the heap
SLOTS = ((0x2F00, 0x2E00, 4), (0x2F08, 0x2E08, 16))  # as the linker meant: the word, the variable, its size
RECORDS = ((LOADER + 0x2F00, 0), (LOADER + 0x2F08, 8))
SIZE = 24


def images(folder: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> AmpiImages:
    """What is found where the list's pointer leads to `data`; every thread holds the end of its stack."""
    job = Job()
    target: MemoryTarget = job.target(folder)
    maps = target.maps()
    loader = find_loader(target, maps)
    assert loader is not None
    threads = find_threads(target, maps, loader)
    assert threads is not None
    held = {rank: one for rank, one in threads.items() if isinstance(one, AmpiThread)}
    held = {rank: replace(one, words=(*one.words, one.stack.end)) for rank, one in held.items()}
    read, pointer, place = target.read, job.heap + LIST, job.heap + LIST + 0x100

    def with_list(address: int, size: int) -> bytes:
        memory = {pointer: struct.pack("<Q", place), place: data, place + 0x40: records(RECORDS)}
        found = next((one for at, one in memory.items() if address == at), None)
        return found[:size] if found is not None else read(address, size)

    monkeypatch.setattr(target, "read", with_list)
    monkeypatch.setattr(swapped_globals, "variable_slots", lambda *_: iter(SLOTS))
    return of_swap(target, replace(loader, swapped=pointer), held)


def records(pairs: tuple[tuple[int, int], ...]) -> bytes:
    return b"".join(struct.pack("<QQ", *pair) for pair in pairs)


def listed(size: int = SIZE, count: int = len(RECORDS), odd: int = 0) -> bytes:
    begin = Job().heap + LIST + 0x140
    return struct.pack("<QQQ", size, begin, begin + 16 * count + odd)


def test_each_rank_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = images(tmp_path, monkeypatch, listed())
    assert (found.method, found.warning) == ("swap", "")
    for rank in range(RANKS):
        block = Job().begin(rank) + MEGABYTE
        assert found.placements[rank] == (
            Redirect(0, LOADER + 0x2E00, 4, block, LOADER + 0x2F00),
            Redirect(0, LOADER + 0x2E08, 16, block + 8, LOADER + 0x2F08),
        )


def test_an_empty_list_makes_nothing_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As GNU ld's ordinary programs have it: one variable for all, and no warning."""
    found = images(tmp_path, monkeypatch, listed(count=0))
    assert (set(found.placements.values()), found.warning) == ({()}, "")


@pytest.mark.parametrize("data", [listed(size=4), listed(odd=8), listed(count=-1), listed(count=1 << 30)])
def test_a_damaged_list_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    found = images(tmp_path, monkeypatch, data)
    assert set(found.placements.values()) == {()} and INVALID in found.warning
