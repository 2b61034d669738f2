"""Words of a running process that lie all over its memory, read again and again in as few calls as possible.

Takes a live target and addresses; gives numbers. Words of one page that are near one another are read as one range: the
kernel takes longer for each range than for the bytes between two.
"""

from __future__ import annotations

import array
from collections.abc import Sequence

from pieglobalsfind.targets.live import LiveTarget

PAGE = 4096
WORD = 8
NEAR = 1024  # bytes from one word to the next that is read along with it


class ScatteredWords:
    """The words at `addresses`; 0 is the address of none."""

    def __init__(self, live: LiveTarget, addresses: Sequence[int]) -> None:
        self._live = live
        self._vectors = array.array("Q")
        places = {0: 0}  # by address: which word of what is read
        first, size = 0, 0  # of the last range
        count = 1
        for address in sorted(set(addresses) - {0}):
            distance = address - first
            if (
                size
                and distance % WORD == 0
                and distance < size + NEAR
                and (address + WORD - 1) // PAGE == first // PAGE
            ):
                count += (distance + WORD - size) // WORD
                size = distance + WORD
                self._vectors[-1] = size
            else:
                first, size = address, WORD
                self._vectors.extend((first, size))
                count += 1
            places[address] = count - 1
        self._room = array.array("Q", bytes(WORD * count))  # the first word is 0, that of no address
        self._order = [places[address] for address in addresses]

    def read(self) -> list[int]:
        """Return the words as of now, in the order of `addresses`; 0 for those that can't be read."""
        room = self._room
        lost = self._live.copy_into(memoryview(room).cast("B")[WORD:], self._vectors)
        for vector in lost:
            begin = 1 + sum(self._vectors[1 : 2 * vector : 2]) // WORD
            for at in range(begin, begin + self._vectors[2 * vector + 1] // WORD):
                room[at] = 0
        return [room[at] for at in self._order]
