"""Ranks by the stack they are in, for very many ranks: each distinct stack once, and its ranks as packed numbers.

Takes stacks of some ranks at a time, as collectors tell them; merging costs as much as there are distinct stacks in
each, and a copy of the ranks' numbers. A stack is known by a digest, and is looked at only where it is new.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pieglobalsfind.stacks.call_tree import Call

Stack = tuple[Call, ...]
DIGEST = 16  # bytes


@dataclass(frozen=True)
class GroupMessage:
    """Groups as one collector sends them: of stack i the i-th digest, depth and number of ranks, all end to end.

    `calls` are the distinct calls of all stacks, which `stacks` numbers, `depths[i]` of them for stack i.
    """

    digests: bytes = b""
    calls: bytes = b"[]"
    stacks: array[int] = field(default_factory=lambda: array("I"))
    depths: array[int] = field(default_factory=lambda: array("I"))
    counts: array[int] = field(default_factory=lambda: array("I"))
    ranks: bytes = b""  # 4 bytes each

    def without(self, ranks: frozenset[int]) -> GroupMessage:
        """Return the message without some ranks."""
        if not ranks:
            return self
        groups = StackGroups()
        groups.take(self)
        left = {
            key: array("i", (rank for rank in members if rank not in ranks)) for key, members in groups.ranks.items()
        }
        kept = {key: members for key, members in left.items() if members}
        return StackGroups({key: groups.stacks[key] for key in kept}, kept).message()


@dataclass
class StackGroups:
    """By digest: the stack, and the ranks (4 bytes each, in no order)."""

    stacks: dict[bytes, Stack] = field(default_factory=dict)
    ranks: dict[bytes, array[int]] = field(default_factory=dict)

    def add(self, ranks: Iterable[int], stack: Stack) -> None:
        """Enter ranks that are in one stack."""
        key = digest(stack)
        self.stacks.setdefault(key, stack)
        self.ranks.setdefault(key, array("i")).extend(ranks)

    def take(self, message: GroupMessage) -> None:
        """Enter what a collector has sent. Its calls are decoded only if a stack is new."""
        calls: list[Call] = []
        first, at, numbers = 0, 0, memoryview(message.ranks)
        for index, (depth, count) in enumerate(zip(message.depths, message.counts)):
            key = message.digests[index * DIGEST : (index + 1) * DIGEST]
            ranks = self.ranks.get(key)
            if ranks is None:
                calls = calls or decoded(message.calls)
                ranks = self.ranks[key] = array("i")
                self.stacks[key] = tuple(calls[number] for number in message.stacks[first : first + depth])
            ranks.frombytes(numbers[at : at + 4 * count])
            first, at = first + depth, at + 4 * count

    def message(self) -> GroupMessage:
        """What to send of these."""
        numbers: dict[Call, int] = {}
        for stack in self.stacks.values():
            for call in stack:
                numbers.setdefault(call, len(numbers))
        return GroupMessage(
            b"".join(self.stacks),
            encoded(numbers),
            array("I", (numbers[call] for stack in self.stacks.values() for call in stack)),
            array("I", map(len, self.stacks.values())),
            array("I", (len(self.ranks[key]) for key in self.stacks)),
            b"".join(self.ranks[key].tobytes() for key in self.stacks),
        )

    def by_rank(self) -> Iterator[tuple[int, Stack]]:
        """Each rank and its calls, outermost first."""
        for key, members in self.ranks.items():
            for rank in members:
                yield rank, self.stacks[key]

    def groups(self) -> Iterator[tuple[Sequence[int], Stack]]:
        """Each distinct stack with its ranks, in no order."""
        for key, members in self.ranks.items():
            yield members.tolist(), self.stacks[key]


def digest(stack: Stack) -> bytes:
    """Equal for equal stacks alone, in any process."""
    return hashlib.blake2b(encoded(stack), digest_size=DIGEST).digest()


def encoded(calls: Iterable[Call]) -> bytes:
    """Return a stack as bytes that another process decodes."""
    return json.dumps([(call.function, call.file, call.line, call.library) for call in calls]).encode()


def decoded(text: bytes) -> list[Call]:
    """Return the stack that `encoded` gave."""
    return [Call(*load) for load in json.loads(text)]


def grouped(stacks: Mapping[int, Stack]) -> StackGroups:
    """The groups of ranks whose stacks are known one by one."""
    ranks: dict[Stack, list[int]] = {}
    for rank, stack in stacks.items():
        ranks.setdefault(stack, []).append(rank)
    stack_groups = StackGroups()
    for stack, members in ranks.items():
        stack_groups.add(members, stack)
    return stack_groups


def merge(messages: Iterable[GroupMessage]) -> StackGroups:
    """One of all, in any order."""
    stack_groups = StackGroups()
    for message in messages:
        stack_groups.take(message)
    return stack_groups
