"""What the ranks' bytes of one variable say about whether it has to be private.

Takes each rank's bytes in turn; gives a verdict of `global_values`, and the bytes that are private without need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Optional

from pieglobalsfind.dwarf.types import ROOT, Variable
from pieglobalsfind.model import Object, Rank
from pieglobalsfind.ranks.variable_address import data_place, is_shared

from ..job.pristine import Pristine
from ..values.layout import WORD
from .global_values import ADDRESSED, DIFFERS, EQUAL, INITIAL, SHARED, UNKNOWN


class SharingEvidence:
    """What is noted of one variable, rank by rank, for its verdict."""

    def __init__(
        self, elf_object: Object, variable: Variable, pristine: Optional[Pristine], pointers: Sequence[int]
    ) -> None:
        """`pointers` are the offsets of all that the variable holds, or may hold."""
        self._object = elf_object
        self._variable = variable
        self._pristine = pristine
        self._first: Optional[bytes] = None
        self._last: Optional[bytes] = None  # that was held against the file
        self._relocated = pristine is not None and pristine.is_relocated(variable)
        self._same_bytes = True
        self._pointers = pointers
        self._words: Optional[list[bytes]] = None  # the first rank's pointers
        self._addressed = False
        self._unwritten: Optional[bool] = True
        self._shared = False
        self._roots: set[tuple[int, int]] = set()  # where ranks have their structs of globals
        self._ranks = 0

    def add(self, rank: Rank, address: int, read: Callable[[], memoryview], key: bytes) -> None:
        """`key` is the data that `read` gives, or its digest: equal for equal data."""
        self._ranks += 1
        self._first = key if self._first is None else self._first
        self._same_bytes = self._same_bytes and key == self._first
        if self._pointers and not self._addressed:
            data = read()
            words = [bytes(data[at : at + WORD]) for at in self._pointers]
            self._words = self._words or words
            self._addressed = words != self._words
        self._shared = self._shared or is_shared(rank, self._object, self._variable)
        if self._variable.storage == ROOT:
            self._shared = self._shared or (rank.pages_of, address) in self._roots
            self._roots.add((rank.pages_of, address))
        if self._unwritten and (key != self._last or self._relocated):
            base = data_place(rank, self._object, self._object.base)
            bias = base - self._object.base + self._object.load_bias if isinstance(base, int) else 0
            pristine = self._pristine
            self._unwritten = None if pristine is None else pristine.is_unwritten(self._variable, read(), bias)
            self._last = key

    def verdict(self, groups: int, is_whole: bool) -> str:
        """`groups`: how many values are known; `is_whole`: every rank's is."""
        if not self._ranks:
            return UNKNOWN
        if self._shared:
            return SHARED
        if self._unwritten and is_whole:
            return INITIAL
        if groups > 1 or not is_whole:
            return DIFFERS if groups > 1 else UNKNOWN
        return ADDRESSED if self._addressed else EQUAL

    @property
    def needless(self) -> int:
        """Equal bytes that every rank has of its own. One rank alone tells nothing."""
        vaddr = self._variable.address
        offset = None if vaddr is None else vaddr + self._object.load_bias - self._object.base
        writable = (segment for segment in self._object.segments if segment.writable)
        private = not self._shared and (
            offset is None or any(segment.offset <= offset < segment.end for segment in writable)
        )
        return self._variable.size if self._ranks > 1 and self._same_bytes and private else 0
