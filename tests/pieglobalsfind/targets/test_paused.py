"""What a pause copies: a page that can't be read takes nothing else along, and is not asked for again."""

from __future__ import annotations

import mmap
import os
import signal
import sys
from pathlib import Path

import pytest

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.ranges import without
from pieglobalsfind.targets import stop_and_copy
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.ptrace import Standstill
from pieglobalsfind.targets.scattered_words import ScatteredWords
from pieglobalsfind.targets.stand_in import RecordedTarget
from pieglobalsfind.targets.stop_and_copy import BELOW, ListPlan, Plan, StackPlan, pause
from tests.support.running import StartJob

PAGE = mmap.PAGESIZE
# Two pages of a file that has one: the second is part of the mapping, and can't be read.
PROGRAM = f"""
import ctypes, signal, sys
file = open(sys.argv[1], "r+b")
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
print("AT", hex(libc.mmap(None, {2 * PAGE}, 3, 2, file.fileno(), 0)), flush=True)
signal.pause()
"""
# One page that is not writable, and at the signal another in its place.
MOVING = f"""
import ctypes, signal
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
at = libc.mmap(None, {PAGE}, 3, 0x22, -1, 0)
ctypes.memmove(at, b"ranklens", 8)
libc.mprotect(at, {PAGE}, 1)
print("AT", hex(at), flush=True)
signal.sigwait({{signal.SIGUSR1}})
libc.mmap(at, {PAGE}, 1, 0x32, -1, 0)
print("ANOTHER", flush=True)
signal.pause()
"""


@pytest.fixture
def place(tmp_path: Path, start_job: StartJob) -> tuple[LiveTarget, int]:
    """A process, and where its two pages are."""
    (tmp_path / "page").write_bytes(b"ranklens" * (PAGE // 8))
    job = start_job(sys.executable, "-c", PROGRAM, tmp_path / "page")
    line = job.wait_for("AT ")
    return LiveTarget(job.pid), int(line.split()[1], 16)


def test_an_unreadable_page_is_not_missed(place: tuple[LiveTarget, int]) -> None:
    live, start = place
    (target,) = pause([(live, Plan(((start, start + 256),)))])
    assert target.read(start, 8) == b"ranklens"
    with pytest.raises(MemoryUnreadable):
        target.read(start + PAGE, 8)
    assert target.missed() == ()
    with pytest.raises(MemoryUnreadable):
        target.read(start + 256, PAGE)
    assert target.missed() == ((start, start + PAGE),)
    (again,) = pause([(live, Plan(((start, start + 256),)).enlarged(target.missed()))])
    assert again.read(start + 256, 8) == b"ranklens"


def test_what_could_not_be_read_is_not_planned(place: tuple[LiveTarget, int]) -> None:
    live, start = place
    recorded = RecordedTarget(live)
    assert recorded.read_many([(start, 8), (start + PAGE - 8, 16), (start + 512, 8)]) == [
        b"ranklens",
        None,
        b"ranklens",
    ]
    assert recorded.noted(with_maps=False) == ((start, start + 256), (start + 512, start + 768))


@pytest.mark.parametrize("is_planned", [True, False])
def test_memory_that_comes_again_after_the_pause(is_planned: bool, start_job: StartJob) -> None:
    """Where the memory map may change, pages that are not writable are those of the pause, or missed."""
    job = start_job(sys.executable, "-c", MOVING)
    start = int(job.wait_for("AT ").split()[1], 16)
    ranges = ((start, start + 256),) if is_planned else ()
    (target,) = pause([(LiveTarget(job.pid), Plan(ranges, with_maps=True))])
    os.kill(job.pid, signal.SIGUSR1)
    job.wait_for("ANOTHER")
    if is_planned:
        assert target.read(start, 8) == b"ranklens"
    else:
        with pytest.raises(MemoryUnreadable):
            target.read(start, 8)
        assert target.was_refused and target.missed() == ((start, start + PAGE),)


@pytest.mark.parametrize("moved", [-5 * PAGE, 3 * PAGE, 0])
def test_a_stack_that_changes_after_the_plan(
    moved: int, start_job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its part in use is copied as it is in the pause, be it larger or smaller than it was just before."""
    (tmp_path / "page").write_bytes(b"\1" * (16 * PAGE))
    job = start_job(sys.executable, "-c", PROGRAM.replace(str(2 * PAGE), str(16 * PAGE)), tmp_path / "page")
    start = int(job.wait_for("AT ").split()[1], 16)
    word, stack, end = start, start + PAGE, start + 16 * PAGE
    pointer = start + 10 * PAGE

    def write(value: int) -> None:
        with open(f"/proc/{job.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(word)
            memory.write(value.to_bytes(8, "little"))

    def after_a_change(pids: list[int]) -> Standstill:
        write(pointer + moved)
        return Standstill(pids)

    write(pointer)
    monkeypatch.setattr(stop_and_copy, "Standstill", after_a_change)
    plan = Plan(stacks=(StackPlan(stack, end, word, PAGE), StackPlan(start + 512, start + PAGE, 0, 1024)))
    (target,) = pause([(LiveTarget(job.pid), plan)])
    assert target.read(pointer + moved - BELOW, end - pointer - moved + BELOW) == b"\1" * (
        end - pointer - moved + BELOW
    )
    assert target.read(start + PAGE - 1024, 1024) == b"\1" * 1024
    with pytest.raises(MemoryUnreadable):
        target.read(pointer + moved - BELOW - 8, 8)


@pytest.mark.parametrize("objects", [(1024, 1088, 3000), (1024, 6 * PAGE, 64)], ids=["near", "apart"])
def test_a_list_that_changes_after_the_plan(
    objects: tuple[int, ...], start_job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objects that it has in the pause are copied; a pointer to nothing takes no other object along."""
    (tmp_path / "page").write_bytes(b"\2" * (16 * PAGE))
    job = start_job(sys.executable, "-c", PROGRAM.replace(str(2 * PAGE), str(16 * PAGE)), tmp_path / "page")
    start = int(job.wait_for("AT ").split()[1], 16)
    table, other_table, before = start + 2 * PAGE, start + 4 * PAGE, start + 12 * PAGE
    pointers = [start + place if place > 64 else place for place in objects]

    def write(place: int, *words: int) -> None:
        with open(f"/proc/{job.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(place)
            memory.write(b"".join(word.to_bytes(8, "little") for word in words))

    def after_a_change(pids: list[int]) -> Standstill:
        write(other_table, pointers[0], 0, *pointers[1:])
        write(start, other_table, other_table + 32)
        return Standstill(pids)

    write(table, before)
    write(start, table, table + 8)
    monkeypatch.setattr(stop_and_copy, "Standstill", after_a_change)
    plan = Plan(lists=(ListPlan(start + PAGE, 48), ListPlan(start, 48)))  # the first has no list in it
    (target,) = pause([(LiveTarget(job.pid), plan)])
    assert target.read(other_table, 32)[:8] == pointers[0].to_bytes(8, "little")
    for pointer in pointers:
        if pointer > 64:
            assert target.read(pointer, 48) == b"\2" * 48
    with pytest.raises(MemoryUnreadable):
        target.read(before, 48)


def test_words_all_over_a_process(place: tuple[LiveTarget, int]) -> None:
    """What can't be read takes no other word along, whatever lies between."""
    live, start = place
    expected = int.from_bytes(b"ranklens", "little")
    addresses = [
        start + PAGE,
        start + 8,
        0,
        start + PAGE - 8,
        start,
        start + 2048,
        start + 3,
        start + PAGE - 4,
        64,
        start,
    ]
    turned = int.from_bytes(b"klensran", "little")
    words = ScatteredWords(live, addresses)
    for _ in range(2):
        assert words.read() == [0, expected, 0, expected, expected, expected, turned, 0, 0, expected]


def test_a_page_that_is_touched_after_the_plan(
    start_job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for zeros, but copied in the next pause; those that are still untouched are zeros."""
    size = 1 << 30
    anonymous = PROGRAM.replace(f"None, {2 * PAGE}, 3, 2, file.fileno()", f"None, {size}, 3, 0x4022, -1")
    (tmp_path / "page").write_bytes(b"")
    job = start_job(sys.executable, "-c", anonymous, tmp_path / "page")
    start = int(job.wait_for("AT ").split()[1], 16)
    place = start + (size >> 1)

    def after_a_change(pids: list[int]) -> Standstill:
        with open(f"/proc/{job.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(place)
            memory.write(b"ranklens")
        return Standstill(pids)

    live = LiveTarget(job.pid)
    plan = Plan(untouched=without(start, start + size, live.backed(start, start + size)))
    monkeypatch.setattr(stop_and_copy, "Standstill", after_a_change)
    (target,) = pause([(live, plan)])
    assert target.read(start + PAGE, PAGE) == bytes(PAGE)
    with pytest.raises(MemoryUnreadable):
        target.read(start, size)
    with pytest.raises(MemoryUnreadable):
        target.read(place, 8)
    missed = target.missed()
    assert (
        any(first <= place < last for first, last in missed) and sum(last - first for first, last in missed) < 1 << 22
    )
    (again,) = pause([(live, plan.enlarged(missed))])
    assert again.read(place - 8, 16) == bytes(8) + b"ranklens"
    assert again.read(start, size).count(b"ranklens") == 1
