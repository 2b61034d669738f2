"""Whether a rank's copies are where the registry says: one of each object, with that object's ELF header, in its range.

Takes the records and the target; gives the reason why a copy can't be believed. What it can't read it does not judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Optional

from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.layout import Records
from pieglobalsfind.elf.file import HEADER_SIZE, PROGRAM_HEADER_SIZE, parse_header
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import Target, read_many, read_or_none

LARGEST_HEAD = 4096  # bytes of ELF header and program headers that are compared


class CopyCheck:
    """Judges copies rank by rank, as ranks are asked for."""

    def __init__(self, target: Target, records: Records) -> None:
        self._target = target
        self._objects = records.objects
        self._ranges = sorted(
            (rank.range_start, rank.range_start + rank.range_size, rank.rank)
            for rank in records.ranks
            if rank.range_size
        )
        self.copied = frozenset(copy.object for copy in records.copies)
        self._head = lru_cache(maxsize=None)(self._read_head)

    def problems(self, rank: layout.RankRecord, copies: Sequence[layout.Copy]) -> dict[int, str]:
        """Why the rank's copy of an object can't be believed, by the object's number."""
        rows: dict[int, list[layout.Copy]] = {number: [] for number in sorted(self.copied)}
        for copy in copies:
            rows[copy.object].append(copy)
        problems = {number: _counted(len(rank_rows)) for number, rank_rows in rows.items() if len(rank_rows) != 1}
        single = [row[0] for row in rows.values() if len(row) == 1]
        for copy in single:
            owner = self._owner(copy.base)
            if owner is not None and owner != rank.rank:
                problems[copy.object] = f"the registry has its copy in the memory of rank {owner}"
        if rank.address_space:  # its addresses mean other pages than the target's reader sees
            return problems
        judged = [(copy, self._head(copy.object)) for copy in single if self._head(copy.object)]
        contents = read_many(self._target, [(copy.base, len(head)) for copy, head in judged])
        for (copy, head), content in zip(judged, contents):
            if content is not None and content != head:
                problems.setdefault(copy.object, f"the registry has its copy at {copy.base:#x}, where no copy begins")
        return problems

    def _owner(self, address: int) -> Optional[int]:
        """The rank in whose range an address lies."""
        owned = range_at(self._ranges, address)
        return owned[2] if owned is not None else None

    def _read_head(self, number: int) -> bytes:
        """The ELF header and program headers of an original; b"" if they can't be read."""
        base = self._objects[number].base
        first = read_or_none(self._target, base, HEADER_SIZE)
        try:
            header = parse_header(first or b"", "an original")
        except ObjectFileError:
            return b""
        end = header.program_offset + header.program_count * PROGRAM_HEADER_SIZE
        return read_or_none(self._target, base, min(max(end, HEADER_SIZE), LARGEST_HEAD)) or b""


def _counted(rows: int) -> str:
    return f"the registry has {rows or 'no'} {'copies' if rows else 'copy'} of it for the rank"
