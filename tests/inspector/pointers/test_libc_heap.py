"""Blocks of glibc's heap against what malloc itself gave out, in the main heap, a thread's, and mapped by themselves;
words that contradict one another are not believed."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from inspector.pointers.libc_blocks import STEP, walked_piece
from inspector.pointers.libc_heap import LibcHeap
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.targets.live import LiveTarget
from tests.support.fabricate.memory import Mapped, MemoryTarget
from tests.support.running import StartJob

START = 0x55550000000
PAGE = 0x1000
ALLOCATES = """
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { COUNT = 300, LARGE = 200, SIZE = 500000 };
static void allocate(unsigned seed) {
    void *kept[COUNT], *freed[COUNT], *large[LARGE];
    for (int i = 0; i < COUNT; i++) {
        size_t size = (seed = seed * 1103515245 + 12345) % 9000 + 1500;
        kept[i] = malloc(size);
        freed[i] = malloc(size);
    }
    mallopt(M_MMAP_THRESHOLD, 300000);
    void *mapped = calloc(1, 300000);
    mallopt(M_MMAP_THRESHOLD, 2 * SIZE);
    for (int i = 0; i < LARGE; i++) { /* more than one heap of a thread has room for */
        large[i] = malloc(SIZE);
        printf("%p %zu 1\\n", large[i], malloc_usable_size(large[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        printf("%p %zu 1\\n", kept[i], malloc_usable_size(kept[i]));
        printf("%p %zu 0\\n", freed[i], malloc_usable_size(freed[i]));
    }
    printf("%p %zu 1\\n", mapped, malloc_usable_size(mapped));
    for (int i = 0; i < COUNT; i++)
        free(freed[i]);
}
static void *thread(void *nothing) {
    allocate(5);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
    return nothing;
}
int main(void) {
    pthread_t made;
    allocate(3);
    pthread_create(&made, NULL, thread, NULL);
    pthread_join(made, NULL);
}
"""


def test_what_malloc_gave_out(tmp_path: Path, start_job: StartJob) -> None:
    """Large blocks, which no thread keeps for itself when they are freed."""
    (tmp_path / "allocates.c").write_text(ALLOCATES)
    program = tmp_path / "allocates"
    subprocess.run(["cc", "-pthread", str(program) + ".c", "-o", str(program)], check=True, timeout=60)
    job = start_job(program)
    job.wait_for("ready")
    said = [(int(one[0], 16), int(one[1]), one[2] == "1") for one in (line.split() for line in job.lines[:-1])]
    assert len(said) == 2 * (2 * 300 + 1 + 200)
    heap = LibcHeap(LiveTarget(job.pid), [])
    assert len(heap.heaps) == 3 and heap.unread == 0
    for address, size, is_kept in said:
        allocated_region = heap.at(address)
        if is_kept:
            assert allocated_region is not None and (allocated_region.start, allocated_region.size) == (
                address,
                size,
            ), hex(address)
            assert heap.at(address + size - 1) == allocated_region
        else:
            assert allocated_region is None or allocated_region.size < size, hex(
                address
            )  # a part of it may have been given out again
    assert heap.in_use >= sum(size for _, size, is_kept in said if is_kept and not 3e5 < size < 4e5)


def chunks(sizes: list[int], total: int) -> bytes:
    """A heap of such blocks, free ones negative, and what is left behind them."""
    found, before_is_used, before = bytearray(), True, 0
    for size in [*sizes, total - sum(map(abs, sizes))]:
        found += struct.pack("<QQ", 0 if before_is_used else before, abs(size) | before_is_used) + bytes(abs(size) - 16)
        before_is_used, before = size > 0, abs(size)
    return bytes(found)


def opened(data: bytes, path: str = "[heap]") -> LibcHeap:
    size = -(-len(data) // PAGE) * PAGE
    return LibcHeap(MemoryTarget([Mapped(START, size, data, path, "rw-", 0)]), [])


def blocks(heap: LibcHeap, size: int) -> list[tuple[int, int]]:
    """(start, size) of the blocks in use, by questions for every unit."""
    found = (heap.at(address) for address in range(START, START + size, 8))
    return list(
        dict.fromkeys(
            (allocated_region.start, allocated_region.size)
            for allocated_region in found
            if allocated_region is not None
        )
    )


def test_blocks() -> None:
    heap = opened(chunks([32, -64, 4096, 32], 2 * PAGE * 2))
    assert blocks(heap, 2 * PAGE * 2) == [(START + 16, 24), (START + 112, 4088), (START + 4208, 24)]
    assert heap.at(START + 39) == (START + 16, 24, True) and heap.at(START + 40) is None
    assert heap.at(START) is None and heap.at(0) is None


@pytest.mark.parametrize("path", ["[heap]", ""])
def test_a_heap_in_several_mappings(path: str) -> None:
    """Linux keeps apart what was mapped before a fork and after it; core files have no names."""
    data, first = chunks([32, 4016, -64, 6000, 32, 9008, 48], 8 * PAGE), PAGE
    whole = blocks(opened(data), len(data))
    for second in range(2 * PAGE, 7 * PAGE, PAGE):
        parts = [data[:first], data[first:second], data[second:]]
        places = [START, START + first, START + second]
        mapped = [Mapped(at, len(part), part, path, "rw-", 0) for at, part in zip(places, parts)]
        before = Mapped(START - PAGE, PAGE, bytes(PAGE), "", "rw-", 0)  # a program's own, where nothing is randomized
        heap = LibcHeap(MemoryTarget([before, *mapped]), [])
        (found,) = heap.heaps
        assert blocks(heap, len(data)) == whole
        assert (found.mapping.start, found.mapping.end, heap.unread) == (START, START + len(data), 0)
        assert [len(part) for _, part, _ in heap.pieces()] == [len(data), PAGE]


def test_contradictions_are_not_believed() -> None:
    sizes, chance = [32, -64, 4096, 32, -512, 48], random.Random(7)
    whole = chunks(sizes, 2 * PAGE)
    assert opened(whole).heaps
    at = 0
    for size in sizes:
        for change in (2, 4, 8, 16, 1 << 40):
            damaged = bytearray(whole)
            struct.pack_into("<Q", damaged, at + 8, struct.unpack_from("<Q", whole, at + 8)[0] ^ change)
            heap = opened(bytes(damaged))
            assert heap.heaps == [] and heap.unread == 2 * PAGE and heap.at(START + 16) is None
            assert opened(bytes(damaged), "").unread == 0, "nobody says that it is a heap"
        at += abs(size)
    for _ in range(200):
        opened(chance.randbytes(PAGE))
    opened(bytes(PAGE))


def test_heaps_are_not_sought_in_what_is_a_ranks_own() -> None:
    data = chunks([32], PAGE)
    target = MemoryTarget([Mapped(START, PAGE, data, "", "rw-", 0)])
    assert LibcHeap(target, [(START - 100, START)]).heaps and LibcHeap(target, [(START + PAGE, START + 9999)]).heaps
    enclosing = [(START - 9000, START + 9000), (START - 8, START - 7)]
    for own in (enclosing, [(START + 8, START + 9)], [(START - 8, START + 1)], [(START - 8, START + 9999)]):
        assert LibcHeap(target, own).heaps == []


def test_a_heap_that_ends_while_it_is_read() -> None:
    class Vanishing(MemoryTarget):
        def read(self, address: int, size: int) -> bytes:
            raise MemoryUnreadable(address, size)

    heap = LibcHeap(Vanishing([Mapped(START, PAGE, b"", "[heap]", "rw-", 0)]), [])
    assert (heap.heaps, heap.unread, list(heap.pieces())) == ([], PAGE, [])


def test_a_large_heap_is_walked_in_pieces_and_kept_in_little_memory() -> None:
    """Blocks of many sizes, some longer than a piece; each is found by its first byte, and by its last."""
    chance = random.Random(3)
    sizes = [size if chance.random() < 0.7 else -size for size in (16 * chance.randrange(2, 40) for _ in range(20000))]
    sizes[5000], sizes[15000], sizes[-1] = 8 * STEP, -3 * STEP, 64
    sizes = [size for size, after in zip(sizes, [*sizes[1:], 1]) if size > 0 or after > 0]  # free ones are merged
    total = -(-(sum(map(abs, sizes)) + PAGE) // PAGE) * PAGE
    heap = opened(chunks(sizes, total))
    assert heap.unread == 0
    at = START
    for size in sizes:
        for address in (at + 16, at + abs(size) // 2 + 8, at + abs(size) + 7):
            expected = (at + 16, size - 8, True) if size > 0 else None
            assert heap.at(address) == expected, (at, size)
        at += abs(size)
    assert heap.in_use == sum(size - 8 for size in sizes if size > 0)


@pytest.mark.parametrize("damage", [2, 4, 8, 16, 1 << 40])
def test_many_blocks_of_one_size_in_a_row(damage: int) -> None:
    """As a container has; runs begin and end anywhere in a piece, and no block of one is believed unseen."""
    chance = random.Random(5)
    sizes: list[int] = []
    while sum(map(abs, sizes)) < 5 * STEP:
        sizes += [16 * chance.randrange(2, 8)] * chance.choice([1, 2, 3, 30, 900])
        if sizes[-1] > 0 and chance.random() < 0.7:
            sizes.append(-16 * chance.randrange(2, 8))
    sizes.append(64)
    total = -(-(sum(map(abs, sizes)) + PAGE) // PAGE) * PAGE
    whole = chunks(sizes, total)
    starts = [START + sum(map(abs, sizes[:number])) for number in range(len(sizes))]
    heap = opened(whole)
    for at, size in zip(starts, sizes):
        assert heap.at(at + 16) == ((at + 16, size - 8, True) if size > 0 else None), (at, size)
    assert heap.in_use == sum(size - 8 for size in sizes if size > 0)
    for at in chance.sample(starts, 40):
        damaged = bytearray(whole)
        struct.pack_into("<Q", damaged, at - START + 8, struct.unpack_from("<Q", whole, at - START + 8)[0] ^ damage)
        assert opened(bytes(damaged)).unread == total, hex(at)


def test_blocks_of_one_size_are_not_walked_one_by_one() -> None:
    """Heaps of containers have tens of millions of them."""
    count = 10 * PAGE
    lines: list[str] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is walked_piece.__code__:
            lines.append(event)
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        heap = opened(chunks([96] * count, count * 96 + PAGE))
    finally:
        sys.settrace(before)
    assert heap.in_use == count * 88 and 0 < len(lines) < count


def test_a_heap_that_changes_while_it_is_walked_is_read_again() -> None:
    """Each of the first reads of a place shows what was never true; the walk goes on from before it."""
    sizes = [48] * 5000
    data = chunks(sizes, 5000 * 48 + PAGE - 5000 * 48 % PAGE)
    torn = set(range(START + STEP // 2, START + len(data) - STEP, STEP))

    class Tearing(MemoryTarget):
        def read(self, address: int, size: int) -> bytes:
            found = super().read(address, size)
            wrong = next((one for one in torn if address <= one < address + size - PAGE), None)
            if wrong is None:
                return found
            torn.remove(wrong)
            return found[: wrong - address] + b"\xff" * (size - wrong + address)

    heap = LibcHeap(Tearing([Mapped(START, len(data), data, "[heap]", "rw-", 0)], is_live=True), [])
    assert (heap.unread, heap.in_use, torn) == (0, 5000 * 40, set())
