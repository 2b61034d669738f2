"""How a command ends in a shell: with an exit status, and a sentence at most, whatever happens to it or its streams.

Takes a command's name, and what loads and runs it. It imports nothing that takes time, and knows nothing of what the
command does, nor of signals: those end it wherever it is (`ending`).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Callable, TextIO

from pieglobalsfind.errors import RanklensError, UsageError

DONE, NOTHING_FOUND, BAD = 0, 1, 2
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # of a stream that is open

Run = Callable[[], int]


def status_of(name: str, load: Callable[[], Run]) -> int:
    """Load and run a command; returns its exit status.

    A reader that has seen enough (`| head`) ends it quietly as done; what can't be written ends it with a sentence.
    """
    try:
        prepare_streams()
        run = load()
        try:
            return run()
        finally:
            sys.stdout.flush()
    except RanklensError as error:
        complain(name, str(error))
        return BAD
    except BrokenPipeError:
        forget_streams()
        return DONE
    except OSError as error:
        complain(name, said_of(error))
        forget_streams()
        return BAD
    except MemoryError:
        complain(name, "there is not enough memory for this: see `ulimit -v`")
        return BAD


def prepare_streams() -> None:
    """Raises `UsageError` if there is no standard output; the others may be closed."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        raise UsageError("standard output is closed", "send it to /dev/null if nobody wants to see it")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout.errors == "strict":  # names of files may be no text, and a terminal may lack letters
        with suppress(AttributeError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def check_words(options: Mapping[str, object]) -> None:
    """Raises `UsageError` for an empty text, which scripts give for variables that are not set."""
    for name, value in options.items():
        if value == "" or (isinstance(value, list) and "" in value):
            raise UsageError(f"an empty text is given for {name}", "give a value, or leave it out")


def complain(name: str, sentence: str) -> None:
    """One line on standard error, whatever is in it."""
    if sys.stderr is None:
        return
    from pieglobalsfind.shell.escape import escape  # late: most commands end without

    with suppress(OSError):
        print(f"{name}: " + escape(sentence).replace("\n", "\\012"), file=sys.stderr)


def said_of(error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    if isinstance(error.filename, (str, bytes)):  # a number is a descriptor of ours
        return f"{os.fsdecode(error.filename)!r} can't be used, {why}"
    return f"standard output can't be written, {why}" if error.errno in UNWRITABLE else f"the system refused, {why}"


def forget_streams() -> None:
    """What can't be written any more is not tried again, as Python would at its end, complaining."""
    for one in (sys.stdout, sys.stderr):
        if one is not None and not is_flushed(one):
            os.dup2(os.open(os.devnull, os.O_WRONLY), one.fileno())


def is_flushed(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False
    return True
