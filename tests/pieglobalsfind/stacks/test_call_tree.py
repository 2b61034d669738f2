"""Merged stacks: every rank is in every call of its own stack and in no other, whatever the order."""

from __future__ import annotations

import random
import re

from pieglobalsfind.ranks import rankset
from pieglobalsfind.stacks.call_tree import Call, Node, lines, merge

CALLS = [Call(name, "solver.c", 10 * number) for number, name in enumerate("abcd", 1)]


def stacks(count: int, seed: int) -> list[tuple[int, list[Call]]]:
    chance = random.Random(seed)
    return [
        (rank, [Call("main", "solver.c", 5), *chance.choices(CALLS, k=chance.randrange(5))]) for rank in range(count)
    ]


def expanded(node: Node, path: tuple[str, ...] = ()) -> dict[int, tuple[str, ...]]:
    """Every rank's longest path of functions, from the tree alone."""
    found: dict[int, tuple[str, ...]] = {}
    for child in node.children.values():  # a rank is in one child at most
        here = (*path, child.function)
        found.update(dict.fromkeys(child.ranks, here))
        found.update(expanded(child, here))
    return found


def test_nothing_is_lost_and_nothing_invented() -> None:
    for seed in range(20):
        chosen = stacks(200, seed)
        tree = merge(random.Random(seed).sample(chosen, len(chosen)))
        assert expanded(tree) == {rank: tuple(call.function for call in stack) for rank, stack in chosen}


def test_text() -> None:
    tree = merge(
        [
            (0, [Call("main", "m.c", 9), Call("step", "m.c", 4), Call("MPI_Recv", library="/lib/librankmpi.so")]),
            (1, [Call("main", "m.c", 9), Call("step", "m.c", 4), Call("MPI_Recv", library="/lib/librankmpi.so")]),
            (2, [Call("main", "m.c", 7), Call("relax", "/home/me/m.c", 30)]),
            (3, [Call("main", "m.c", 9), Call("step", "m.c", 5)]),
        ]
    )
    assert list(lines(tree)) == [
        "main at m.c:7,9  [0-3]",
        "|-- step at m.c:4,5  [0-1,3]",
        "|   `-- MPI_Recv from librankmpi.so  [0-1]",
        "`-- relax at m.c:30  [2]",
    ]


def test_many_lines_are_not_all_listed() -> None:
    tree = merge((rank, [Call("loop", "m.c", rank + 1)]) for rank in range(50))
    (line,) = lines(tree)
    assert line == "loop at m.c:1,2,3,4,...  [0-49]"


def test_ranks_of_every_line_are_those_of_the_tree() -> None:
    tree = merge(stacks(300, 1))
    sets = [rankset.parse(found) for found in re.findall(r"\[([\d,-]+)\]$", "\n".join(lines(tree)), re.MULTILINE)]
    assert len(sets) == len(list(lines(tree)))
