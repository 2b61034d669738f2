"""Loaded objects in which an input has damaged nothing are read once, and not anew for each input.

What `LoadedElf` answers follows from its own mapped bytes alone, which is checked here; so the answers about the sound
target's object are those about the damaged target's.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Optional

from pieglobalsfind.elf.loaded import LoadedElf, Read
from pieglobalsfind.errors import RanklensError
from tests.fuzz.patches import MOST_READS, DamagedTarget, StandingTarget

Extent = tuple[int, int]
FIND, INIT = LoadedElf.symbol_extent, LoadedElf.__init__


class SharedElf(LoadedElf):
    """A sound target's object, which several inputs ask."""

    def __init__(self, sound: StandingTarget, base: int) -> None:
        self.found: dict[str, Optional[Extent]] = {}
        self.end = base + (1 << 12)  # of what is read up to the program headers
        INIT(self, lambda address, size: self._own(sound, address, size), base)
        self.end = base + self.span

    def _own(self, sound: StandingTarget, address: int, size: int) -> bytes:
        assert self.base <= address <= address + size <= self.end, "an object's answer follows from bytes of another"
        return sound.read(address, size)


def share() -> None:
    """From now on."""
    known: dict[tuple[int, int], Optional[SharedElf]] = {}

    def shared(read: Read, base: int) -> Optional[SharedElf]:
        target = getattr(read, "__self__", None)
        if not isinstance(target, DamagedTarget):
            return None
        place = id(target.sound), base
        if place not in known:
            if len(known) >= MOST_READS:
                known.clear()
            try:
                known[place] = SharedElf(target.sound, base)
            except RanklensError:
                known[place] = None
        elf = known[place]
        first = bisect_left(target.touched, base)
        is_damaged = elf is None or (first < len(target.touched) and target.touched[first] < elf.end)
        return None if is_damaged else elf

    def initialize(elf: LoadedElf, read: Read, base: int) -> None:
        sound = shared(read, base)
        if sound is None:
            INIT(elf, read, base)
        else:
            elf.__dict__ = sound.__dict__

    def symbol_extent(elf: LoadedElf, name: str) -> Optional[Extent]:
        found = elf.__dict__.get("found")
        if found is None:
            return FIND(elf, name)
        if name not in found:
            found[name] = FIND(elf, name)
        extent: Optional[Extent] = found[name]
        return extent

    setattr(LoadedElf, "__init__", initialize)  # noqa: B010
    setattr(LoadedElf, "symbol_extent", symbol_extent)  # noqa: B010
