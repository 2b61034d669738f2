"""A stack is recognized by the words that told it, and by no fewer: one that was changed in any of them is not."""

from __future__ import annotations

import array
from dataclasses import replace

import pytest

from pieglobalsfind.machine.processor import RegisterRule
from pieglobalsfind.model import BLOCKED, Rank, Region
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.unchanged_stacks import StackMarks
from pieglobalsfind.stacks.unwind_cache import StackShape
from tests.pieglobalsfind.stacks.test_unwind_cache import make_rank

RBP, RSP, RIP = 6, 7, 16
CONTEXT, POINTER = 0x7000_1000, 0x7000_1010
LAYOUT = (RegisterRule(RBP, True, 0), RegisterRule(RIP, True, 8), RegisterRule(RSP, False, 16))
CALLS = (Call("main"), Call("wait"))
# rbp lies 0x20 above the stack pointer, the pc is 0x400100; the second word of the stack is a return address
SHAPE = StackShape(RSP, CALLS, (), ((RBP, 0x20, 1), (RIP, 0x400100, 0)), ((1, 0x400200, 0),), 16)
WORDS = [POINTER + 0x20, 0x400100, 77, 0x400200, 88]
TOLD = (0, 1, 3)  # which of them tell the stack


class Copy:
    """What was copied of a process: one piece."""

    def __init__(self, words: list[int]) -> None:
        self._data = memoryview(array.array("Q", words).tobytes())

    def piece(self, address: int) -> tuple[int, memoryview]:
        return CONTEXT, self._data


@pytest.fixture
def rank() -> Rank:
    return replace(make_rank(0x2000), state=BLOCKED, context=CONTEXT, stack=Region(0x7000_0000, 0x2000), placements=())


@pytest.fixture
def marks(rank: Rank) -> StackMarks:
    learned = StackMarks(LAYOUT, RSP)
    learned.learn(rank, SHAPE, CALLS)
    return learned


def test_the_same_words_are_the_same_calls(marks: StackMarks, rank: Rank) -> None:
    assert marks.calls(Copy(WORDS), rank.rank, CONTEXT) == CALLS


@pytest.mark.parametrize("changed", range(len(WORDS)))
def test_a_changed_word(changed: int, marks: StackMarks, rank: Rank) -> None:
    words = [word + 8 * (number == changed) for number, word in enumerate(WORDS)]
    assert marks.calls(Copy(words), rank.rank, CONTEXT) == (None if changed in TOLD else CALLS)


def test_another_rank_context_or_less_copied(marks: StackMarks, rank: Rank) -> None:
    assert marks.calls(Copy(WORDS), rank.rank + 1, CONTEXT) is None
    assert marks.calls(Copy(WORDS), rank.rank, CONTEXT + 8) is None
    assert marks.calls(Copy(WORDS[:3]), rank.rank, CONTEXT) is None


def test_contexts_that_lie_elsewhere_are_not_learned(rank: Rank) -> None:
    saved = StackMarks((*LAYOUT[:2], RegisterRule(RSP, True, 16)), RSP)
    saved.learn(rank, SHAPE, CALLS)
    assert saved.calls(Copy(WORDS), rank.rank, CONTEXT) is None
