"""Damage to bytes whose truth is known: an input of the fuzzer is a list of patches, so kept inputs are small.

Takes the fuzzer's bytes; gives damaged bytes or a damaged target, and which of its bytes differ from the sound ones.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import KernelThread, MemoryMapping, Target, populated, read_or_none
from tests.support.fabricate.memory import MemoryTarget, SparseBytes

LONGEST = 16  # bytes of one patch
MOST = 64  # patches of one input
WINDOW = 64  # bytes: parts of memory without any other byte than 0 are not damaged
PLACE = struct.Struct("<IB")
MOST_READS = 1 << 16  # answers of a sound target that are kept

Patch = tuple[int, bytes]


def patches(data: bytes, size: int) -> Iterator[Patch]:
    """(offset, bytes) for each record of an input: offset, length, bytes. Offsets are taken modulo `size`."""
    at = 0
    for _ in range(MOST):
        if at + PLACE.size > len(data):
            return
        offset, length = PLACE.unpack_from(data, at)
        at += PLACE.size
        length = length % LONGEST + 1
        content = data[at : at + length]
        at += length
        yield offset % size, content[: size - offset % size]


def written(places: Iterable[Patch]) -> bytes:
    """An input that has these patches."""
    return b"".join(PLACE.pack(offset, len(content) - 1) + content for offset, content in places)


def damaged(sound: bytes, data: bytes) -> tuple[bytes, frozenset[int]]:
    """The damaged bytes, and the offsets of those that differ."""
    changed = bytearray(sound)
    touched: set[int] = set()
    for offset, content in patches(data, len(sound)):
        changed[offset : offset + len(content)] = content
        touched.update(range(offset, offset + len(content)))
    return bytes(changed), frozenset(offset for offset in touched if changed[offset] != sound[offset])


class StandingTarget:
    """A target that never changes: it is asked once, and answers again from what it said, whatever the input."""

    is_live = False

    def __init__(self, sound: Target) -> None:
        self.sound = sound
        self._maps, self._threads = sound.maps(), sound.threads()
        self._read: dict[tuple[int, int], Optional[bytes]] = {}
        self._paths: dict[str, Optional[str]] = {}
        self._identities: dict[str, Optional[bytes]] = {}
        self._populated: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def answer(self, address: int, size: int) -> Optional[bytes]:
        """What `read` gives; None if it can't be had."""
        place = address, size
        if place not in self._read:
            if len(self._read) >= MOST_READS:
                self._read.clear()  # damaged addresses lead to ever other places
            self._read[place] = read_or_none(self.sound, address, size)
        return self._read[place]

    def read(self, address: int, size: int) -> bytes:
        """As the sound target."""
        content = self.answer(address, size)
        if content is None:
            raise MemoryUnreadable(address, size)
        return content

    def maps(self) -> Sequence[MemoryMapping]:
        """As the sound target."""
        return self._maps

    def threads(self) -> Sequence[KernelThread]:
        """As the sound target."""
        return self._threads

    def populated(self, start: int, end: int) -> list[tuple[int, int]]:
        """As the sound target."""
        if (start, end) not in self._populated:
            if len(self._populated) >= MOST_READS:
                self._populated.clear()
            self._populated[start, end] = list(populated(self.sound, start, end))
        return self._populated[start, end]

    def open_path(self, path: str) -> Optional[str]:
        """As the sound target."""
        if path not in self._paths:
            if len(self._paths) >= MOST_READS:
                self._paths.clear()
            self._paths[path] = self.sound.open_path(path)
        return self._paths[path]

    def file_identity(self, path: str) -> Optional[bytes]:
        """As the sound target."""
        if path not in self._identities:
            self._identities[path] = self.sound.file_identity(path)
        return self._identities[path]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sound, name)


class InFrontOf:
    """A target whose memory is what `answer` gives; everything else is the sound target's."""

    def __init__(self, sound: StandingTarget) -> None:
        self.sound = sound

    def answer(self, address: int, size: int) -> Optional[bytes]:
        """What `read` gives; None if it can't be had."""
        raise NotImplementedError

    def read(self, address: int, size: int) -> bytes:
        """As every target."""
        content = self.answer(address, size)
        if content is None:
            raise MemoryUnreadable(address, size)
        return content

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[Optional[bytes]]:
        """As `pieglobalsfind.target.read_many`, one at a time."""
        return [self.answer(*place) for place in places]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sound, name)


class DamagedTarget(InFrontOf):
    """A target with some bytes changed."""

    def __init__(self, sound: StandingTarget, windows: Sequence[int], data: bytes) -> None:
        super().__init__(sound)
        changed: dict[int, int] = {}
        for offset, content in patches(data, len(windows) * WINDOW):
            start = windows[offset // WINDOW] + offset % WINDOW
            changed.update(enumerate(content, start))
        self._changed = changed
        self.touched = sorted(changed)  # the addresses of bytes that were changed
        self.windows = frozenset(address // WINDOW for address in changed)

    def answer(self, address: int, size: int) -> Optional[bytes]:
        """The sound target's bytes, with the changed ones."""
        content = self.sound.answer(address, size)
        first = bisect_left(self.touched, address)
        if content is None or first == len(self.touched) or self.touched[first] >= address + size:
            return content
        changed = bytearray(content)
        for at in self.touched[first : bisect_left(self.touched, address + size, first)]:
            changed[at - address] = self._changed[at]
        return bytes(changed)


def windows_of(target: MemoryTarget) -> list[int]:
    """Addresses of the windows of a target's memory that hold anything but zeros."""
    found = []
    for mapped in target.mapped:
        parts = mapped.data.parts if isinstance(mapped.data, SparseBytes) else [(0, mapped.data)]
        for offset, content in parts:
            places = range(0, len(content), WINDOW)
            found += [mapped.start + offset + at for at in places if any(content[at : at + WINDOW])]
    return found
