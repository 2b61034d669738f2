"""Writes a file or a folder in one step: a reader never sees half of it, and an interrupted command leaves nothing.

Takes a place and content; the file is its owner's alone, since it may hold a program's data. What is not a regular
file, as /dev/null or a FIFO, is never replaced by one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pieglobalsfind.errors import UsageError
from pieglobalsfind.shell.signals import cleanup_on_signal

MOST_LINKS = 40  # as the kernel follows
NEW, OWNERS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600


class Checked(Exception):  # noqa: N818 - it reads as what it says
    """Nothing is to be written; what was there stays."""


@contextmanager
def whole_file(place: Path, hint: str) -> Iterator[IO[bytes]]:
    """A file to write to; it takes its place when the block ends well. A link to a file is replaced, not followed.

    Raises `UsageError` with `hint` if it can't be written.
    """
    try:
        if place.exists() and not place.is_file():
            raise UsageError(f"{place} can't be written, it is not a regular file", hint)
        if is_open_file(place):
            raise UsageError(f"{place} can't be written, it stands for an open file", hint)
        with replacing(place, f".{place.stem[:40]}-") as file:
            yield file
    except OSError as error:
        raise UsageError(f"{place} can't be written, {error.strerror}", hint) from error


@contextmanager
def replacing(place: Path, prefix: str) -> Iterator[IO[bytes]]:
    """A file beside `place`, which it replaces when the block ends well; else it is gone. Raises `OSError`.

    Its name, with `prefix`, is made up before the file is: at every moment it is known what to remove.
    """
    partial = place.parent / f"{prefix}{os.urandom(8).hex()}"
    with cleanup_on_signal(lambda: partial.unlink(missing_ok=True)):
        try:
            with open(os.open(partial, NEW, OWNERS), "wb") as file:
                yield file
            partial.replace(place)
        except BaseException:  # a debugger's Ctrl-C, too
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def whole_folder(place: Path, hint: str) -> Iterator[Path]:
    """A new folder to write to; it takes its name when the block ends well, else it is gone.

    Raises `UsageError` with `hint` if it can't be written, or if something of that name is there already.
    """
    from shutil import rmtree  # late: only this needs it

    partial = place.parent / f".{place.name[:40]}-{os.urandom(8).hex()}"
    try:
        with cleanup_on_signal(lambda: rmtree(partial, ignore_errors=True)):
            try:
                if place.is_symlink() or place.exists():
                    raise UsageError(f"{place} is there already", hint)
                partial.mkdir(mode=0o700)
                yield partial
                partial.rename(place)
            except BaseException:
                rmtree(partial, ignore_errors=True)
                raise
    except OSError as error:
        raise UsageError(f"{place} can't be written, {error.strerror}", hint) from error


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
