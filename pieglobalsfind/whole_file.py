"""Writes a file in one step: a reader never sees half of it, and whoever is interrupted leaves nothing behind.

Takes a place and content; the file is its owner's alone, since it may hold a program's data. What is no regular file,
as /dev/null or a FIFO, is never replaced by one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pieglobalsfind.errors import UsageError

MOST_LINKS = 40  # as the kernel follows


class Checked(Exception):  # noqa: N818 - it reads as what it says
    """Nothing is to be written; what was there stays."""


@contextmanager
def whole_file(place: Path, hint: str) -> Iterator[IO[bytes]]:
    """A file to write to; it takes its place when the block ends well. A link to a file is replaced, not followed.

    Raises `UsageError` with `hint` if it can't be written.
    """
    partial = ""
    try:
        if place.exists() and not place.is_file():
            raise UsageError(f"{place} can't be written, it is no regular file", hint)
        if is_open_file(place):
            raise UsageError(f"{place} can't be written, it stands for an open file", hint)
        handle, partial = tempfile.mkstemp(dir=place.parent, prefix=f".{place.stem[:40]}-")
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(partial).replace(place)
    except BaseException as error:  # also when somebody interrupts us
        if partial:
            Path(partial).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"{place} can't be written, {error.strerror}", hint) from error
        raise


def is_open_file(place: Path) -> bool:
    """Whether a name, or what it is a link to, is the kernel's for an open file: /dev/stdout, /proc/self/fd/3."""
    for _ in range(MOST_LINKS):
        if not place.is_symlink():
            return False
        if place.parent.resolve().parts[:2] == ("/", "proc"):
            return True
        place = place.parent / place.readlink()
    return False


def check_place(place: Path, hint: str) -> None:
    """Raises `UsageError` if it can't be written now: better than when all that was to be in it has been read."""
    with suppress(Checked), whole_file(place, hint):
        raise Checked


def write_whole(place: Path, text: str, hint: str) -> None:
    """The same of a text, in UTF-8."""
    with whole_file(place, hint) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
