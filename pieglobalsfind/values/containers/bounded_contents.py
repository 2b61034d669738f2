"""Limit how much of a container is read, and compare by a digest what its text leaves out.

Takes what families read of one variable on one rank; gives a digest, and why a part was not compared. Everything here
is bounded: bytes, elements, levels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pieglobalsfind.dwarf.types import TypeTable
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.values.containers.order_free_text import without_order

MOST_SHOWN = 200  # GDB's `print elements`
MOST_COMPARED = 2_000  # elements of one variable beyond those shown that are compared one by one
MOST_BYTES = 1 << 20  # of one variable on one rank
LARGEST_ELEMENT = 1 << 16  # bytes


def encoded(text: str) -> bytes:
    """An element's text as it is compared."""
    return without_order(text).encode()


class NoValue(Exception):  # noqa: N818 - it is not an error of ours: the memory holds no valid container
    """What the memory holds is not a container; the sentence says why."""


class Contents:
    """What was read of one variable on one rank: at most so many bytes and elements."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_elements: int = MOST_COMPARED) -> None:
        self._left = most_bytes
        self._elements = most_elements
        self._hash = hashlib.blake2b(digest_size=16)
        self._is_used = False
        self.lacking = ""  # why not all was compared

    def allow(self, size: int) -> int:
        """How many of so many bytes may be read still; they count as read."""
        allowed = min(size, self._left)
        self._left -= allowed
        if allowed < size:
            self.lacking = self.lacking or "it is too large"
        return allowed

    def allow_element(self) -> bool:
        """Whether one more element may be read."""
        self._elements -= 1
        if self._elements < 0:
            self.lacking = self.lacking or "it has too many elements"
        return self._elements >= 0

    def add(self, data: bytes) -> None:
        """Compare this, which the text leaves out."""
        self._is_used = True
        self._hash.update(len(data).to_bytes(8, "little"))
        self._hash.update(data)

    @property
    def digest(self) -> bytes:
        """Of all that was added, b"" if that is nothing."""
        return self._hash.digest() if self._is_used else b""


class ContainedObject(NamedTuple):  # a dataclass takes three times as long to make, and there are very many
    """An object within a variable, or one that it leads to."""

    type: int
    address: int
    data: bytes


@dataclass(frozen=True)
class ContentSource:
    """What families read from. `read` raises `MemoryUnreadable`; `show` gives an object's text, one level deeper."""

    types: TypeTable
    read: Callable[[int, int], bytes]
    show: Callable[[ContainedObject], str]
    is_plain: Callable[[int], bool]  # whether equal bytes of a type are equal values, whatever the rank
    contents: Contents

    def member(self, whole: ContainedObject, *names: str) -> ContainedObject:
        """The member by its path, through base classes; raises `NoValue` if the type has none."""
        offset, index, size = self._path(whole, names)
        return ContainedObject(index, whole.address + offset, whole.data[offset : offset + size])

    def _path(self, whole: ContainedObject, names: tuple[str, ...]) -> tuple[int, int, int]:
        path = self.types.path(whole.type, names)
        if path is None:
            wrong = next(number for number in range(len(names)) if not self.types.path(whole.type, names[: number + 1]))
            raise NoValue(f"its type has no member {names[wrong]}")
        return path

    def has(self, whole: ContainedObject, name: str) -> bool:
        """Return whether an object has a member."""
        return self.types.place(whole.type, name) is not None

    def at(self, whole: ContainedObject, offset: int, index: int) -> ContainedObject:
        """The object of a type at an offset within another."""
        size = self.types.size(index)
        return ContainedObject(index, whole.address + offset, whole.data[offset : offset + size])

    def word(self, whole: ContainedObject, *names: str) -> int:
        """A member that is a pointer or a count."""
        data = whole.data
        if names:
            offset, _, size = self._path(whole, names)
            data = data[offset : offset + size]
        if not 1 <= len(data) <= 8:
            raise NoValue("it is cut short")
        return int.from_bytes(data, "little")

    def fetch(self, index: int, address: int) -> ContainedObject:
        """An object elsewhere; raises `NoValue` if it can't be read, or may not be any more."""
        size = self.types.size(index)
        if not 0 <= size <= LARGEST_ELEMENT or self.contents.allow(size) < size:
            raise NoValue("it is too large")
        return ContainedObject(index, address, self.memory(address, size))

    def memory(self, address: int, size: int) -> bytes:
        """Bytes; raises `NoValue` if they can't be read."""
        try:
            return self.read(address, size)
        except MemoryUnreadable as error:
            raise NoValue(str(error)) from error
