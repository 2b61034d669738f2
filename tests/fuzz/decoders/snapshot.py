"""Snapshots: an input is the text of their entries; what the archive then holds soundly is true or absent."""

from __future__ import annotations

import io
import json
import zipfile

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.target import read_or_none
from pieglobalsfind.targets.snapshot import DESCRIPTION, FOLDER, FORM, MAPS, THREADS, ZEROS, SnapshotTarget
from tests.fuzz.scratch import ScratchFile

NAMES = (DESCRIPTION, MAPS, THREADS, ZEROS)
BETWEEN = b"\n\n"  # between the entries of an input
START, CONTENT = 0x10000, bytes(range(256)) * 16
SCRATCH = ScratchFile()
FLAGS = {"readable": True, "writable": True, "executable": False, "shared": False}
MAPPINGS = [
    {"start": START, "end": START + 4096, "offset": 0, "path": "", **FLAGS},
    {"start": 0x20000, "end": 0x30000, "offset": 4096, "path": "/a", **FLAGS},
]
KERNEL_THREADS = [
    {"tid": 7, "registers": {"7": 0x10010, "16": 0x20000}},
    {"tid": 8, "registers": None, "why": "it was not stopped"},
]


def lines(rows: list[object]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows).rstrip(b"\n")


def entries(form: str = FORM, **more: object) -> list[bytes]:
    description = {"form": form, "of": "process 7", "taken": "2026", "build_ids": {"/a": "abcd"}, **more}
    rows: list[list[object]] = [[*MAPPINGS], [*KERNEL_THREADS], [[0x40000, 0x50000]]]
    return [json.dumps(description).encode(), *map(lines, rows)]


def seeds() -> list[bytes]:
    """A sound one of either form, and some with numbers that JSON has and a snapshot has not."""
    sound = BETWEEN.join(entries())
    first = BETWEEN.join(entries("ranklens-snapshot-1", maps=MAPPINGS, threads=KERNEL_THREADS))
    odd = [
        sound.replace(b"65536", word) for word in (b"1e9", b"null", b"-1", b"Infinity", b'"1"', b"1" * 5000, b"true")
    ]
    return [sound, first, *odd]


def check(data: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in zip(NAMES, data.split(BETWEEN)):
            archive.writestr(name, content + b"\n" * (name != DESCRIPTION and bool(content)))
        archive.writestr(f"{FOLDER}{START:x}", CONTENT)
    SCRATCH.write(buffer.getvalue())
    try:
        target = SnapshotTarget(SCRATCH.path)
    except RanklensError:
        return
    maps, threads = target.maps(), target.threads()
    assert list(maps) == sorted(maps, key=lambda mapping: mapping.start)
    for thread in threads:
        assert 0 <= thread.tid < 1 << 31
    assert read_or_none(target, START, 4096) == CONTENT
    for mapping in maps[:16]:
        read_or_none(target, mapping.start, min(mapping.end - mapping.start, 4096))
    _ = target.description, target.file_identity("/a"), list(target.populated(0, 1 << 64))
