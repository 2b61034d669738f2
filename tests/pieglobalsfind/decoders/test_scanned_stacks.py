"""Whose stack a kernel thread is on, where copies alone tell of ranks: by return addresses into one rank's code."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pieglobalsfind.decoders.elf_scan import EVIDENCE
from pieglobalsfind.decoders.running import is_between_ranks
from pieglobalsfind.decoders.scanned_stacks import with_stacks
from pieglobalsfind.machine.x86_64 import FCONTEXT, X86_64
from pieglobalsfind.model import UNKNOWN_STATE, Absent, Object, Rank, RankTable, Rebase, Region, Segment
from pieglobalsfind.target import KernelThread
from tests.support.fabricate.memory import Mapped, MemoryTarget

ORIGINAL, COPIES, CODE, STACKS = 0x10000, (0x20000, 0x30000), 0x1000, (0x50000, 0x60000)
CALL = bytes((0xE8, 0, 0, 0, 0))
RETURN, NO_RETURN = 0x105, 0x205  # offsets in the code: behind a call, and behind none
UNKNOWN = Absent("a scan of memory can't find it")


def rank_of(number: int) -> Rank:
    return Rank(
        rank=number,
        state=UNKNOWN_STATE,
        processing_element=-1,
        kernel_thread=0,
        context=UNKNOWN,
        stack=UNKNOWN,
        heap=UNKNOWN,
        heap_used=UNKNOWN,
        range=UNKNOWN,
        waiting=None,
        switches=UNKNOWN,
        placements=(Rebase(0, ORIGINAL, 0x2000, COPIES[number]),),
        evidence=EVIDENCE,
    )


def table() -> RankTable:
    segments = (Segment(CODE, 0x1000, 0x1000, 5),)
    elf_object = Object(0, "/program", b"id", ORIGINAL, ORIGINAL, 0x2000, segments, True, True)
    return RankTable("", "", 2, (elf_object,), (rank_of(0), rank_of(1)), EVIDENCE, processor=X86_64)


def stacks(words: Sequence[Sequence[int]], is_live: bool = False) -> list[object]:
    """Each rank's stack, where so many threads are on stacks that hold these words."""
    code = CALL.rjust(RETURN, b"\x90").ljust(0x1000, b"\x90")
    mapped = [Mapped(copy + CODE, 0x1000, code, protection="r-x") for copy in COPIES]
    mapped += [Mapped(STACKS[at], 0x1000, struct.pack(f"<{len(held)}Q", *held)) for at, held in enumerate(words)]
    threads = [KernelThread(at, {X86_64.stack_pointer: STACKS[at] + 3, X86_64.pc: 0}) for at in range(len(words))]
    target = MemoryTarget(mapped, is_live, tuple(threads))
    return [rank.stack for rank in with_stacks(target, table(), target.maps()).ranks]


def place(rank: int, offset: int = RETURN) -> int:
    return COPIES[rank] + CODE + offset


def test_a_thread_whose_stack_returns_to_one_rank() -> None:
    assert stacks([(0, 7, place(1), 0)]) == [UNKNOWN, Region(STACKS[0], 0x1000)]
    assert stacks([(0, place(1), place(1)), (0, place(0))]) == [
        Region(STACKS[1], 0x1000),
        Region(STACKS[0], 0x1000),
    ]


@pytest.mark.parametrize(
    "words",
    [
        [(0, 7)],  # no rank's code
        [(place(0), 0)],  # below the stack pointer
        [(0, place(0), place(1))],  # two ranks' code
        [(0, place(0, NO_RETURN))],  # a pointer to a function: no call ends before it
        [(0, place(0)), (0, place(0))],  # two threads claim the same rank
    ],
)
def test_what_tells_of_no_rank(words: Sequence[Sequence[int]]) -> None:
    assert stacks(words) == [UNKNOWN, UNKNOWN]


def test_of_a_running_process_nothing_is_told() -> None:
    assert stacks([(0, place(1))], is_live=True) == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    ("ranks", "is_between"),
    [
        ((rank_of(0), rank_of(1)), False),  # no context of this runtime is known
        ((replace(rank_of(0), context=STACKS[0]), replace(rank_of(1), context=STACKS[1])), False),
        ((replace(rank_of(0), context=STACKS[0]), replace(rank_of(1), kernel_thread=7)), False),
        ((replace(rank_of(0), context=STACKS[0]), rank_of(1)), True),
    ],
)
def test_a_thread_that_alone_knows_a_rank_s_context(ranks: tuple[Rank, Rank], is_between: bool) -> None:
    layout = FCONTEXT if any(isinstance(rank.context, int) for rank in ranks) else ()
    assert is_between_ranks(replace(table(), ranks=ranks, context_layout=layout)) == is_between
