"""Recognize a suspended rank's stack as unchanged since an earlier moment, by comparing a few words.

Takes shapes of stacks that were recognized; gives the calls of a later moment. Where contexts lie in the stack, one
comparison of a few words replaces reading registers and frames. It knows no unwind rule, and no name.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple, Optional, Protocol

from pieglobalsfind.machine.processor import WORD, Layout
from pieglobalsfind.model import Rank
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.unwind_cache import StackShape, bases_of

Calls = tuple[Call, ...]

MOST_MARKS = 16  # stacks of one rank that are kept


class Copied(Protocol):
    """What was copied of a process."""

    def piece(self, address: int) -> tuple[int, memoryview]:
        """Where the piece begins that holds an address, and its bytes; none if it was not copied."""
        ...


class _Mark(NamedTuple):
    """`pick` takes from the words of `size` bytes, which begin with the context, those that must be `expected`."""

    size: int
    pick: Callable[[memoryview], tuple[int, ...]]
    expected: tuple[int, ...]
    calls: Calls


class StackMarks:
    """The stacks that ranks had, by rank and context; for one layout of contexts."""

    def __init__(self, layout: Layout, stack_pointer: int) -> None:
        self._saved = {rule.dwarf_register: rule.offset for rule in layout if rule.saved}
        self._low = min(self._saved.values(), default=0)
        self._to_pointer = next(
            (rule.offset for rule in layout if rule.dwarf_register == stack_pointer and not rule.saved), None
        )
        self._marks: dict[int, dict[int, list[_Mark]]] = {}

    def calls(self, target: Copied, rank: int, context: int) -> Optional[Calls]:
        """The rank's calls, if its stack is one that was learned; None otherwise."""
        marks = self._marks.get(rank, {}).get(context)
        if marks is None:
            return None
        start, data = target.piece(context + self._low)
        begin = context + self._low - start
        for mark in marks:
            words = data[begin : begin + mark.size]
            if len(words) == mark.size and mark.pick(words.cast("Q")) == mark.expected:
                return mark.calls
        return None

    def learn(self, rank: Rank, shape: StackShape, calls: Calls) -> None:
        """Keep that a rank with this context and a stack of this shape has those calls."""
        if self._to_pointer is None or not isinstance(rank.context, int):
            return
        pointer, start = rank.context + self._to_pointer, rank.context + self._low
        bases = bases_of(rank, pointer)
        expected = {self._saved[number] - self._low: gap + bases[base] for number, gap, base in shape.registers}
        expected.update({pointer - start + number * WORD: gap + bases[base] for number, gap, base in shape.words})
        size = max(expected) + WORD
        places = [place // WORD for place in expected]
        marks = self._marks.setdefault(rank.rank, {})
        if sum(map(len, marks.values())) >= MOST_MARKS:
            marks.clear()
        mark = _Mark(size, itemgetter(*places, places[0]), (*expected.values(), next(iter(expected.values()))), calls)
        marks.setdefault(rank.context, []).append(mark)
