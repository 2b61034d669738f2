"""The 8-byte words of many objects of a target, read together.

Takes addresses; gives tuples of words, None for an object that can't be read. It believes nothing about them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Optional

from pieglobalsfind.target import Target, read_many

WORD = 8
Words = tuple[int, ...]
NOTHING: Words = ()


def words_of(target: Target, addresses: Sequence[int], most: int, least: int) -> list[Words]:
    """Of each object `most` words, or fewer where its mapping ends before, but `least`; () for what can't be read."""
    words = _read(target, addresses, most)
    lacking = [index for index, data in enumerate(words) if data is None]
    while lacking and most > least:
        most = max(most // 2, least)
        for index, again in zip(lacking, _read(target, [addresses[index] for index in lacking], most)):
            words[index] = again
        lacking = [index for index in lacking if words[index] is None]
    return [data or NOTHING for data in words]


def _read(target: Target, addresses: Sequence[int], count: int) -> list[Optional[Words]]:
    form = struct.Struct(f"<{count}Q")
    data = read_many(target, [(address, form.size) for address in addresses])
    return [None if piece is None else form.unpack(piece) for piece in data]
