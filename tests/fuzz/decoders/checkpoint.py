"""Checkpoint folders: an input is the text of the folder's own description."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import DESCRIPTION, in_checkpoint
from tests.fuzz.scratch import IN_MEMORY

FOLDER = tempfile.TemporaryDirectory(dir=IN_MEMORY)
HERE = Path(FOLDER.name, "000003")
HERE.mkdir()
for number in range(2):
    (HERE / f"process-{number}.core").write_bytes(b"")


def seeds() -> list[bytes]:
    """Sound ones, and numbers that are none or too large."""
    sound = b"version 1\njob abc\nprocesses 2\nranks 8\nend \n"
    numbers = (b"0", b"-1", b"99999999", b"9" * 5000, b"\xd9\xa2", b"2.0", b"")
    return [sound, *(sound.replace(b"processes 2", b"processes " + number) for number in numbers)]


def check(data: bytes) -> None:
    (HERE / DESCRIPTION).write_bytes(data)
    try:
        members = in_checkpoint(Path(FOLDER.name))
    except RanklensError:
        return
    assert members.count >= len(members.found) and len(members.found) <= 2
