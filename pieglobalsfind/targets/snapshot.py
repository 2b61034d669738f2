"""A snapshot: what was read of a target once, in one file that any machine can read.

Takes a path. The file is a ZIP archive (PKWARE APPNOTE; any unzip shows it). Beside `snapshot.json` it has `maps.jsonl`
and `threads.jsonl`, a mapping or thread in each line; `memory/ADDRESS`, at most PIECE bytes from that address on; and
`zeros.jsonl`, in each line a range of pages that were never touched. Nothing in it is believed before
it has been checked; what it does not hold, and does not call zeros, is unreadable.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, Optional

from pieglobalsfind.errors import MemoryUnreadable, TargetError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranges import place_of, range_at
from pieglobalsfind.target import KernelThread, MemoryMapping
from pieglobalsfind.targets.live import LARGEST_READ, TOP
from pieglobalsfind.targets.procfs import is_file

FORM = "ranklens-snapshot-2"
FIRST_FORM = "ranklens-snapshot-1"  # had mappings and threads in the description
DESCRIPTION, MAPS, THREADS, ZEROS = "snapshot.json", "maps.jsonl", "threads.jsonl", "zeros.jsonl"
FOLDER = "memory/"
PIECE = 1 << 18  # bytes
LARGEST_DESCRIPTION = 1 << 24  # bytes; JSON takes up to twenty times as much memory once it is parsed
LONGEST_LINE = 1 << 16  # bytes; a path has at most 4,096
MOST_MAPPINGS = 1 << 20  # sixteen times what vm.max_map_count allows by default
MOST_THREADS = 1 << 20
MOST_PIECES = 1 << 22
MOST_REGISTERS = 1 << 16
# What the standard library raises of damaged archives and of JSON that is not what was written
DAMAGE = (OSError, zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, AttributeError, EOFError,
          NotImplementedError, RuntimeError, RecursionError, struct.error)  # fmt: skip


class SnapshotTarget:
    """A snapshot file. Raises `TargetError` if it is none, or damaged."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
            self._read_description(parsed(self._content(DESCRIPTION, LARGEST_DESCRIPTION)))
            self._index_pieces()
            self._zeros = checked_ranges(self._lines(ZEROS, MOST_PIECES)) if ZEROS in self._archive.NameToInfo else []
        except DAMAGE as error:
            raise TargetError(
                f"{path} is not a whole snapshot, {error}", "make a new one by `inspector snapshot`"
            ) from error
        self._piece = lru_cache(maxsize=64)(self._read_piece)

    def _content(self, name: str, largest: int) -> bytes:
        """At most `largest` bytes of an entry, whatever it claims."""
        with self._archive.open(name) as file:
            content = file.read(largest + 1)
        if len(content) > largest:
            raise ValueError(f"{name} is larger than it may be")
        return content

    def _read_description(self, content: dict[str, Any]) -> None:
        form = content["form"]
        if form not in (FORM, FIRST_FORM):
            raise ValueError(f"its form is {str(form)[:40]!r}, not {FORM}")
        self._of, self.taken = str(content["of"]), str(content["taken"])
        self._maps = checked_maps(content["maps"] if form == FIRST_FORM else self._lines(MAPS, MOST_MAPPINGS))
        threads = content["threads"] if form == FIRST_FORM else self._lines(THREADS, MOST_THREADS)
        self._threads = tuple(map(_checked_thread, threads))
        self._identities = {str(path): bytes.fromhex(text) for path, text in content["build_ids"].items()}

    def _lines(self, name: str, most: int) -> Iterator[Any]:
        """The JSON of each line of an entry, one at a time: a small archive may hold a very large entry."""
        with self._archive.open(name) as file:
            for _ in range(most):
                line = file.readline(LONGEST_LINE)
                if not line:
                    return
                if not line.endswith(b"\n"):
                    raise ValueError(f"{name} has a line that is cut short or too long")
                yield parsed(line)
        raise ValueError(f"{name} has more than {most} lines")

    def _index_pieces(self) -> None:
        pieces: list[tuple[int, int]] = []
        for zip_info in self._archive.infolist():
            if zip_info.filename.startswith(FOLDER):
                start = int(zip_info.filename[len(FOLDER) :], 16)
                if (
                    not 0 < zip_info.file_size <= PIECE
                    or not 0 <= start <= TOP - zip_info.file_size
                    or len(pieces) > MOST_PIECES
                ):
                    raise ValueError(f"{zip_info.filename} has an impossible size")
                pieces.append((start, start + zip_info.file_size))
        self._pieces = sorted(pieces)

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return f"snapshot {Path(self.path).name} of {self._of}, taken {self.taken}"

    @property
    def is_live(self) -> bool:
        """Return whether the target can change: a file can't."""
        return False

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes; raises `MemoryUnreadable` unless the snapshot holds them all."""
        if address < 0 or size < 0 or address + size > TOP or size > LARGEST_READ:
            raise MemoryUnreadable(address, size, "there are no such addresses")
        parts, at, end = [], address, address + size
        while at < end:
            piece, zeros = range_at(self._pieces, at), range_at(self._zeros, at)
            if piece is not None:
                start, stop = piece
                parts.append(self._piece(start, stop - start)[at - start : end - start])
            elif zeros is not None:
                stop = zeros[1]
                parts.append(bytes(min(stop, end) - at))
            else:
                raise MemoryUnreadable(address, size, "it is not in the snapshot")
            at = min(stop, end)
        return b"".join(parts)

    def populated(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """(start, end) of what it holds between two addresses, ascending, pieces that touch as one."""
        index = max(place_of(self._pieces, start), 0)
        whole = (start, start)
        for first, stop in islice(self._pieces, index, None):
            low, high = max(first, start), min(stop, end)
            if first >= end:
                break
            if low >= high:
                continue
            if whole[1] != low:
                if whole[0] < whole[1]:
                    yield whole
                whole = (low, low)
            whole = (whole[0], high)
        if whole[0] < whole[1]:
            yield whole

    def _read_piece(self, start: int, size: int) -> bytes:
        try:
            content = self._content(f"{FOLDER}{start:x}", PIECE)
        except DAMAGE as error:
            raise MemoryUnreadable(start, size, f"the snapshot is damaged there ({error})") from error
        if len(content) != size:
            raise MemoryUnreadable(start, size, "the snapshot is damaged there")
        return content

    def maps(self) -> Sequence[MemoryMapping]:
        """Return the memory map."""
        return self._maps

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads with their registers."""
        return self._threads

    def open_path(self, path: str) -> Optional[str]:
        """The file at the same path on this machine."""
        return path if is_file(path) else None

    def file_identity(self, path: str) -> Optional[bytes]:
        """The build-id that the target had of `path`."""
        return self._identities.get(path)


def parsed(text: bytes) -> Any:
    """JSON without fractions, infinities and NaN, which no part of a snapshot has; raises `ValueError`."""
    return json.loads(text, parse_float=_refuse_number, parse_constant=_refuse_number)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"it has the number {text[:40]}")


def checked_maps(rows: Iterable[dict[str, Any]]) -> tuple[MemoryMapping, ...]:
    """The memory map, ascending; raises `ValueError` for any other."""
    mappings, last = [], 0
    for row in rows:
        mapping = _checked_mapping(row)
        if mapping.start < last:
            raise ValueError("its mappings are not in ascending order")
        last = mapping.end
        mappings.append(mapping)
    return tuple(mappings)


def checked_ranges(rows: Iterable[Any]) -> list[tuple[int, int]]:
    """Ranges of addresses, ascending; raises `ValueError` for any others."""
    ranges: list[tuple[int, int]] = []
    for start, end in rows:
        if not (ranges[-1][1] if ranges else 0) <= integer(start) < integer(end) <= TOP:
            raise ValueError("its ranges of zeros are invalid")
        ranges.append((start, end))
    return ranges


def _checked_mapping(row: dict[str, Any]) -> MemoryMapping:
    mapping = MemoryMapping(**row)
    flags = (mapping.readable, mapping.writable, mapping.executable, mapping.shared)
    if (
        not 0 <= integer(mapping.start) < integer(mapping.end) <= TOP
        or not 0 <= integer(mapping.offset) < TOP
        or not all(isinstance(flag, bool) for flag in flags)
        or not isinstance(mapping.path, str)
    ):
        raise ValueError("a mapping is invalid")
    return mapping


def _checked_thread(row: dict[str, Any]) -> KernelThread:
    tid = integer(row["tid"])
    if not 0 <= tid < 1 << 31:
        raise ValueError("a thread is invalid")
    if row["registers"] is None:
        return KernelThread(tid, Absent(str(row["why"])))
    registers = {int(number): integer(value) for number, value in row["registers"].items()}
    if any(not 0 <= value < TOP or not 0 <= number < MOST_REGISTERS for number, value in registers.items()):
        raise ValueError("a register is invalid")
    return KernelThread(tid, registers)


def integer(value: object) -> int:
    """Raises `TypeError` for what JSON has beside integers, truth values included."""
    if type(value) is not int:
        raise TypeError(f"{str(value)[:40]!r} is not an integer")
    return value


def is_snapshot(path: str) -> bool:
    """Whether the file begins as a ZIP archive does; a FIFO, a device or a folder is none."""
    if not is_file(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False
