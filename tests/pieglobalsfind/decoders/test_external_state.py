"""Registries of a hook: contexts, heaps and who runs are where the runtime keeps them, or are said not to be known."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pieglobalsfind import model
from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.registry.external_state import EMPTY_HEAP, MAY_RUN, NO_HEAP, NOT_SAVED, RESTLESS
from pieglobalsfind.errors import RegistryError
from pieglobalsfind.model import Absent, Rank, Region
from pieglobalsfind.target import KernelThread
from tests.support.fabricate.memory import Mapped, MemoryTarget
from tests.support.fabricate.registry import FIRST_HEADER_SIZE, Object, Registry
from tests.support.fabricate.registry import Rank as Record

REGISTRY, CODE, WORDS, FIRST, SHARE = 0x7E0000000000, 0x402000, 0x7D0000000000, 0x200000000000, 1 << 30
STACK, HEAP_AT = 0x10000, 0x20000
NAME = "/memfd:rank_debug_registry (deleted)"
PROGRAM = Object("/home/me/prog.user.so", 0x7F0000000000, 0x2000, ((0, 0x2000, 0x2000, 5),))
RANKS = 3
CURRENT = WORDS + 0x800
LAYOUT = ((16, 1, 0x40), (7, 2, 0x48))


def thread_of(rank: int) -> int:
    return WORDS + 0x10 * rank


def begin(rank: int) -> int:
    return FIRST + rank * SHARE


def written(count: int = RANKS, current: int = CURRENT) -> Registry:
    """As a hook writes it: of every rank the words that lead to its context and to its heap's end."""
    return Registry(
        REGISTRY,
        (PROGRAM,),
        tuple(
            Record(one, 1, range=(begin(one), SHARE), stack=(begin(one), STACK), heap=(begin(one) + HEAP_AT, 0))
            for one in range(count)
        ),
        tuple((one, 0, begin(one) + STACK) for one in range(count)),
        registers=LAYOUT,
        calls=(),
        kept=tuple((one, 0, WORDS + 0x100 + 8 * one, thread_of(one), WORDS + 0x200 + 8 * one) for one in range(count)),
        processing_elements=((7, 4712, current),),
    )


class Words(dict[int, int]):
    """What the runtime keeps, by address."""

    def encode(self) -> bytes:
        data = bytearray(0x1000)
        for address, value in self.items():
            struct.pack_into("<Q", data, address - WORDS, value)
        return bytes(data)


def sound(running: int = 0) -> Words:
    words = Words({CURRENT: thread_of(running)})
    for rank in range(RANKS):
        words[WORDS + 0x100 + 8 * rank] = begin(rank) + 0x8000
        words[WORDS + 0x200 + 8 * rank] = begin(rank) + HEAP_AT + 0x5000
    return words


def target_of(registry: Registry, words: Words, returns_to: int = CODE + 0x10) -> MemoryTarget:
    stacks = [
        Mapped(begin(one), STACK, b"\0" * 0x8040 + struct.pack("<Q", returns_to), "", "rw-") for one in range(RANKS)
    ]
    registry_memory = Mapped(registry.address, registry.size, registry.encode(), NAME)
    code = Mapped(CODE, 0x1000, b"", "/home/me/prog", "r-x")
    return MemoryTarget([registry_memory, code, Mapped(WORDS, 0x1000, words.encode()), *stacks])


def ranks_of(target: MemoryTarget) -> Sequence[Rank]:
    return decode(target).ranks


def test_what_the_runtime_keeps_is_read_there() -> None:
    table = decode(target_of(written(), sound()))
    assert {rank.evidence.tier for rank in table.ranks} == {"hook"}
    assert [rank.state for rank in table.ranks] == [model.RUNNING, model.READY, model.READY]
    assert (table.ranks[0].processing_element, table.ranks[0].kernel_thread) == (7, 4712)
    assert isinstance(table.ranks[0].context, Absent)
    assert [rank.context for rank in table.ranks[1:]] == [begin(1) + 0x8000, begin(2) + 0x8000]
    assert [rank.heap for rank in table.ranks] == [Region(begin(one) + HEAP_AT, 0x5000) for one in range(RANKS)]
    assert all(isinstance(rank.switches, Absent) and isinstance(rank.heap_used, Absent) for rank in table.ranks)
    assert table.warnings == ()


def test_a_stack_pointer_tells_more_than_the_runtime() -> None:
    """The runtime names the next rank before it switches: the stack that a thread is on is what counts."""
    target = target_of(written(), sound(running=1))
    target.kernel_threads = (KernelThread(4712, {7: begin(2) + 0x100}),)
    assert [rank.state for rank in ranks_of(target)] == [model.READY, model.RUNNING, model.RUNNING]
    target.is_live = True
    assert ranks_of(target)[2].kernel_thread == 4712


@pytest.mark.parametrize("where", [0, begin(1) + STACK, 0x123456789A])
def test_a_context_outside_its_stack_is_none(where: int) -> None:
    words = sound()
    words[WORDS + 0x108] = where
    assert ranks_of(target_of(written(), words))[1].context == NOT_SAVED


def test_a_context_that_returns_to_no_code_of_the_runtime_is_none() -> None:
    assert [rank.context for rank in ranks_of(target_of(written(), sound(), 0x1234))[1:]] == [NOT_SAVED, NOT_SAVED]


@pytest.mark.parametrize(
    ("end", "heap"),
    [(HEAP_AT, EMPTY_HEAP), (HEAP_AT - 1, NO_HEAP), (SHARE + 1, NO_HEAP), (SHARE, Region(0, 0))],
)
def test_the_end_of_the_heap_is_believed_within_its_share_alone(end: int, heap: object) -> None:
    words = sound()
    words[WORDS + 0x208] = begin(1) + end
    if isinstance(heap, Region):
        heap = Region(begin(1) + HEAP_AT, SHARE - HEAP_AT)
    assert ranks_of(target_of(written(), words))[1].heap == heap


def test_words_that_can_not_be_read() -> None:
    target = target_of(written(), sound())
    target.mapped = [mapped for mapped in target.mapped if mapped.start != WORDS]
    assert [(rank.state, rank.context, rank.heap) for rank in ranks_of(target)] == [
        (model.READY, NOT_SAVED, NO_HEAP) for _ in range(RANKS)
    ]


def test_of_a_running_job_whose_elements_are_unknown_no_context_is_believed() -> None:
    target = target_of(written(current=0), sound())
    target.is_live = True
    assert {rank.context for rank in ranks_of(target)} == {MAY_RUN}
    target.is_live = False  # stopped: the threads' stack pointers tell who runs
    assert {type(rank.context) for rank in ranks_of(target)} == {int}


def test_a_job_that_never_stands_still() -> None:
    target = target_of(written(), sound())
    target.is_live = True
    read = target.read
    turns = iter(range(1_000_000))

    def switching(address: int, size: int) -> bytes:
        if address == CURRENT:
            return struct.pack("<Q", thread_of(next(turns) % RANKS))
        return read(address, size)

    target.read = switching  # type: ignore[method-assign]
    table = decode(target)
    assert RESTLESS in table.warnings
    assert not any(isinstance(rank.context, int) for rank in table.ranks)


def test_ranks_that_have_left_are_not_looked_at() -> None:
    registry = written()
    ranks = (registry.ranks[0], replace(registry.ranks[1], state=4), registry.ranks[2])
    target = target_of(registry.changed(ranks=ranks), sound())
    gone = ranks_of(target)[1]
    assert (gone.state, gone.placements) == (model.MIGRATED_OUT, ())
    assert isinstance(gone.context, Absent)
    assert (WORDS + 0x108, 8) not in target.reads


def test_a_row_for_a_rank_that_is_not_there() -> None:
    registry = written()
    with pytest.raises(RegistryError, match="external state of rank 9"):
        decode(target_of(registry.changed(kept=((9, 0, 0, 0, 0),)), sound()))


def test_the_first_writers_of_version_1_had_no_such_tables() -> None:
    registry = written().changed(header_size=FIRST_HEADER_SIZE)
    table = decode(target_of(registry, sound()))
    assert {rank.evidence.tier for rank in table.ranks} == {"registry"}
    assert [rank.state for rank in table.ranks] == [model.READY] * RANKS
