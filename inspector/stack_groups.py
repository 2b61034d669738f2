"""Ranks by the stack they are in, for very many ranks: each distinct stack once, and its ranks as packed numbers.

Takes stacks of some ranks at a time, as collectors tell them; merging costs as much as there are distinct stacks in
each, and a copy of the ranks' numbers. A stack is known by a digest, and is looked at only where it is new.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pieglobalsfind.call_tree import Call, Node

Stack = tuple[Call, ...]
DIGEST = 16  # bytes


@dataclass(frozen=True)
class Message:
    """Groups as one collector sends them: of stack i the i-th digest, text and number of ranks, all end to end."""

    digests: bytes = b""
    texts: bytes = b""
    ends: array[int] = field(default_factory=lambda: array("Q"))  # of the texts
    counts: array[int] = field(default_factory=lambda: array("I"))
    ranks: bytes = b""  # 4 bytes each


@dataclass
class StackGroups:
    """By digest: the stack as text, and the ranks (4 bytes each, in no order)."""

    texts: dict[bytes, bytes] = field(default_factory=dict)
    ranks: dict[bytes, array[int]] = field(default_factory=dict)

    def add(self, ranks: Iterable[int], stack: Stack) -> None:
        """Enter ranks that are in one stack."""
        text = encoded(stack)
        key = hashlib.blake2b(text, digest_size=DIGEST).digest()
        self.texts.setdefault(key, text)
        self.ranks.setdefault(key, array("i")).extend(ranks)

    def take(self, message: Message) -> None:
        """Enter what a collector has sent."""
        at, numbers = 0, memoryview(message.ranks)
        for index, count in enumerate(message.counts):
            key = message.digests[index * DIGEST : (index + 1) * DIGEST]
            known = self.ranks.get(key)
            if known is None:
                known = self.ranks[key] = array("i")
                self.texts[key] = message.texts[message.ends[index - 1] if index else 0 : message.ends[index]]
            known.frombytes(numbers[at : at + 4 * count])
            at += 4 * count

    def message(self) -> Message:
        """What to send of these."""
        ends, total = array("Q"), 0
        for text in self.texts.values():
            total += len(text)
            ends.append(total)
        return Message(
            b"".join(self.texts),
            b"".join(self.texts.values()),
            ends,
            array("I", (len(self.ranks[key]) for key in self.texts)),
            b"".join(self.ranks[key].tobytes() for key in self.texts),
        )

    def by_rank(self) -> Iterator[tuple[int, Stack]]:
        """Each rank and its calls, outermost first."""
        for key, members in self.ranks.items():
            stack = decoded(self.texts[key])
            for rank in members:
                yield rank, stack

    def tree(self) -> Node:
        """As one call tree."""
        root = Node("")
        for key, members in self.ranks.items():
            root.add_all(members, decoded(self.texts[key]))
        return root


def encoded(stack: Stack) -> bytes:
    """Equal for equal stacks alone, in any process."""
    return json.dumps([(one.function, one.file, one.line, one.library) for one in stack]).encode()


def decoded(text: bytes) -> Stack:
    return tuple(Call(*one) for one in json.loads(text))


def grouped(stacks: Mapping[int, Stack]) -> StackGroups:
    """The groups of ranks whose stacks are known one by one."""
    ranks: dict[Stack, list[int]] = {}
    for rank, stack in stacks.items():
        ranks.setdefault(stack, []).append(rank)
    found = StackGroups()
    for stack, members in ranks.items():
        found.add(members, stack)
    return found


def merge(messages: Iterable[Message]) -> StackGroups:
    """One of all, in any order."""
    found = StackGroups()
    for one in messages:
        found.take(one)
    return found
