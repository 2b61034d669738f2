"""Ranks by their stacks, merged from parts: the tree is the one that all stacks together make, whoever merges first."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence

from inspector.analysis import stack_groups
from inspector.analysis.stack_groups import GroupMessage, StackGroups
from inspector.job.read_stacks import grouped
from pieglobalsfind.stacks import call_tree
from pieglobalsfind.stacks.call_tree import Call

Stacks = dict[int, tuple[Call, ...]]


def some_stacks(count: int) -> Stacks:
    """Of few calls, so that many are alike, and some begin as others do; one is empty."""
    chance = random.Random(7)
    calls = [Call(f"f{number}", "a.c", number % 5) for number in range(12)] + [Call("g", library="/lib/libmpi.so")]
    return {rank: tuple(chance.choices(calls, k=chance.randrange(5))) for rank in range(count)}


def message(stacks: Stacks, ranks: Sequence[int]) -> GroupMessage:
    sent: GroupMessage = pickle.loads(
        pickle.dumps(stack_groups.grouped({rank: stacks[rank] for rank in ranks}).message())
    )
    return sent


def lines(groups: StackGroups) -> list[str]:
    return list(call_tree.lines(grouped(groups.groups(), {}).tree()))


def test_parts_make_the_whole_in_any_order() -> None:
    stacks = some_stacks(600)
    numbers = list(stacks)
    random.Random(8).shuffle(numbers)
    parts = [message(stacks, numbers[at : at + 50]) for at in range(0, 600, 50)]
    whole = stack_groups.merge(parts)
    assert dict(whole.by_rank()) == stacks
    expected = list(call_tree.lines(call_tree.merge(sorted(stacks.items()))))
    assert lines(whole) == expected
    halves = [stack_groups.merge(parts[:5]).message(), GroupMessage(), stack_groups.merge(parts[5:]).message()]
    again = stack_groups.merge(reversed(halves))
    assert dict(again.by_rank()) == stacks and lines(again) == expected


def test_a_message_is_of_the_size_of_what_is_distinct() -> None:
    """Beyond four bytes for each rank: a thousand ranks in the same stacks as ten cost no more."""
    stacks = some_stacks(10)
    few = message(stacks, range(10))
    many = message({rank: stacks[rank % 10] for rank in range(1000)}, range(1000))
    assert len(many.ranks) == 4000 and len(few.ranks) == 40
    assert (many.calls, many.stacks, many.depths, many.digests) == (few.calls, few.stacks, few.depths, few.digests)
