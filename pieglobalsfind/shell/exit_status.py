"""Turn what a command returns or raises into an exit status and at most one sentence on standard error.

It knows nothing of what the command does. Signals end a command elsewhere (`signals`).
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
        print_error(name, str(error))
        return BAD
    except BrokenPipeError:
        discard_streams()
        return DONE
    except OSError as error:
        print_error(name, os_error_message(error))
        discard_streams()
        return BAD
    except MemoryError:
        print_error(name, "there is not enough memory for this: see `ulimit -v`")
        return BAD


def prepare_streams() -> None:
    """Replace closed streams by /dev/null; raises `UsageError` if standard output is closed."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        raise UsageError("standard output is closed", "send it to /dev/null if it is not wanted")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout.errors == "strict":  # names of files may be no text, and a terminal may lack letters
        with suppress(AttributeError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def check_words(options: Mapping[str, object]) -> None:
    """Raise `UsageError` for an empty text, which a script gives for a variable that is not set."""
    for name, value in options.items():
        if value == "" or (isinstance(value, list) and "" in value):
            raise UsageError(f"an empty text is given for {name}", "give a value, or leave it out")


def print_error(name: str, sentence: str) -> None:
    """Print one line on standard error, whatever characters the sentence has; a closed stream is not an error."""
    if sys.stderr is None:
        return
    from pieglobalsfind.shell.escape import escape  # late: most commands end without

    with suppress(OSError):
        print(f"{name}: " + escape(sentence).replace("\n", "\\012"), file=sys.stderr)


def os_error_message(error: OSError) -> str:
    """Return a sentence that names the file, or says that a stream or the system refused."""
    why = (error.strerror or str(error)).lower()
    if isinstance(error.filename, (str, bytes)):  # a number is a descriptor of ours
        return f"{os.fsdecode(error.filename)!r} can't be used, {why}"
    return f"standard output can't be written, {why}" if error.errno in UNWRITABLE else f"the system refused, {why}"


def discard_streams() -> None:
    """Give up output that can't be written: at exit Python would try again, and complain."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not is_flushed(stream):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_flushed(stream: TextIO) -> bool:
    """Flush a stream; returns whether that worked."""
    try:
        stream.flush()
    except OSError:
        return False
    return True
