"""Makes a snapshot: one file of what can be read of a target (its form: `snapshot.py`).

Takes a target and ranges of its addresses; writes the file. It reads no page that was never touched.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranges import Range, merged, place_of
from pieglobalsfind.shell.atomic_file import whole_file
from pieglobalsfind.target import KernelThread, MemoryMapping, Target, populated, read_or_none
from pieglobalsfind.targets.live import TOP
from pieglobalsfind.targets.snapshot import DESCRIPTION, FOLDER, FORM, MAPS, PIECE, THREADS, ZEROS, SnapshotTarget


@dataclass(frozen=True)
class Written:
    """What a snapshot holds: `memory` bytes of the target in `pieces`, `size` bytes of file.

    `zeros` is the bytes in pages that were never touched, of which it holds no bytes.
    """

    memory: int
    pieces: int
    size: int
    zeros: int = 0


def silent(done: int, total: int) -> None:
    """Report no progress."""


def write(
    target: Target,
    regions: Iterable[tuple[int, int]],
    taken: str,
    path: str,
    tell: Callable[[int, int], None] = silent,
) -> Written:
    """Write a snapshot with the bytes of `regions` (start, end), as far as they can be read.

    In one step: no reader ever sees half a file. `tell` hears how many bytes of how many are done. Raises `UsageError`
    if the file can't be written.
    """
    place = Path(path)
    memory = pieces = 0
    zeros: list[tuple[int, int]] = []
    hint = "name another file by -o"
    with whole_file(place, hint) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        maps = target.maps()
        archive.writestr(DESCRIPTION, json.dumps(described(target, maps, taken)))
        _write_lines(archive, MAPS, (mapping._asdict() for mapping in maps))
        _write_lines(archive, THREADS, map(_described_thread, target.threads()))
        for start, data in readable(target, maps, regions, zeros, tell):
            archive.writestr(f"{FOLDER}{start:x}", data)
            memory, pieces = memory + len(data), pieces + 1
        _write_lines(archive, ZEROS, zeros)
    return Written(memory, pieces, place.stat().st_size, sum(end - start for start, end in zeros))


def _write_lines(archive: zipfile.ZipFile, name: str, rows: Iterable[Any]) -> None:
    with archive.open(name, "w") as file:
        for row in rows:
            file.write(json.dumps(row).encode() + b"\n")


def described(target: Target, maps: Sequence[MemoryMapping], taken: str) -> dict[str, Any]:
    """Return what a snapshot says of a target in its JSON."""
    paths = {mapping.path for mapping in maps if mapping.path.startswith("/")}
    identities = {path: target.file_identity(path) for path in sorted(paths)}
    return {
        "form": FORM,
        "of": target.description,
        "taken": taken,
        "build_ids": {path: build_id.hex() for path, build_id in identities.items() if build_id},
    }


def _described_thread(thread: KernelThread) -> dict[str, Any]:
    if isinstance(thread.registers, Absent):
        return {"tid": thread.tid, "registers": None, "why": thread.registers.reason}
    return {"tid": thread.tid, "registers": {str(number): value for number, value in thread.registers.items()}}


def readable(
    target: Target,
    maps: Sequence[MemoryMapping],
    regions: Iterable[tuple[int, int]],
    zeros: list[tuple[int, int]],
    tell: Callable[[int, int], None] = silent,
) -> Iterator[tuple[int, bytes]]:
    """Pieces of the regions, ascending and without overlap; a page that can't be read is left out.

    What was never touched is added to `zeros` and not read.
    """
    wanted = _whole_pages(regions)
    done, total = 0, sum(end - start for start, end in wanted)
    for start, end in wanted:
        for first, last in touched(target, maps, start, end, zeros):
            for at in range(first, last, PIECE):
                tell(done + at - start, total)
                yield from pieces_of(target, at, min(at + PIECE, last))
        done += end - start


def touched(
    target: Target, maps: Sequence[MemoryMapping], start: int, end: int, zeros: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The parts of a range that may hold anything but zeros; what else can be read is added to `zeros`."""
    for first, last, is_anonymous in by_mappings(maps, start, end):
        if not is_anonymous or isinstance(target, SnapshotTarget):
            yield first, last
            continue
        reached = first
        for low, high in (*populated(target, first, last), (last, last)):
            if reached < low and read_or_none(target, low - 1, 1) is not None:  # a core file may not hold its end
                zeros.append((reached, low))
            if low < high:
                yield low, high
            reached = high


def by_mappings(maps: Sequence[MemoryMapping], start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it is private anonymous memory) of a range, whole; mappings ascend."""
    at = start
    for mapping in islice(maps, max(place_of(maps, start), 0), None):
        if mapping.start >= end:
            break
        low, high = max(mapping.start, at), min(mapping.end, end)
        if low < high and mapping.path in ("", "[heap]") and mapping.readable and not mapping.shared:
            if at < low:
                yield at, low, False
            yield low, high, True
            at = high
    if at < end:
        yield at, end, False


def pieces_of(target: Target, start: int, end: int) -> Iterable[tuple[int, bytes]]:
    """The whole if it can be read, else those halves that can, down to pages."""
    try:
        yield start, target.read(start, end - start)
    except MemoryUnreadable:
        middle = (start + (end - start) // 2) & -4096
        if start < middle < end:
            yield from pieces_of(target, start, middle)
            yield from pieces_of(target, middle, end)
    except RanklensError:
        return


def _whole_pages(regions: Iterable[Range]) -> tuple[Range, ...]:
    """Whole pages, ascending, those that touch joined."""
    return merged((start & -4096, min((end + 4095) & -4096, TOP)) for start, end in regions if end > start)
