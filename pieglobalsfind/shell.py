"""How a command ends in a shell: with an exit status, and a sentence at most, whatever happens to it or its streams.

Takes a command's name, and what loads and runs it. It imports nothing that takes time, so that it is in charge from
the first moment on, and knows nothing of what the command does.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Callable, TextIO

from pieglobalsfind.errors import RanklensError, UsageError

DONE, NOTHING_FOUND, BAD = 0, 1, 2
INTERRUPTED = 128 + signal.SIGINT
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # of a stream that is open

SOON = 0.01  # seconds

Run = Callable[[], int]


def status_of(name: str, load: Callable[[], Run]) -> int:
    """Load and run a command; returns its exit status.

    A reader that has seen enough (`| head`) ends it quietly as done; what can't be written ends it with a sentence.
    """
    try:
        prepare_streams()
        with ending_at_once():
            run = load()
        try:
            with heard_again():
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
    except KeyboardInterrupt:
        return INTERRUPTED


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


@contextmanager
def ending_at_once() -> Iterator[None]:
    """A Ctrl-C inside ends the process then and there: as an exception it might be lost in the midst of an import."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # nobody is to interrupt us, or somebody else cares
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def heard_again() -> Iterator[None]:
    """Ctrl-C and SIGTERM end what is inside also where they are raised in a destructor or a callback from C.

    Python prints such exceptions and goes on: a flight recorder would never end.
    """
    before = sys.unraisablehook
    sys.unraisablehook = lambda swallowed: raise_again(swallowed, before)
    try:
        yield
    finally:
        sys.unraisablehook = before


def raise_again(swallowed: sys.UnraisableHookArgs, before: Callable[[sys.UnraisableHookArgs], object]) -> None:
    error = swallowed.exc_value
    if not isinstance(error, (KeyboardInterrupt, SystemExit)):
        before(swallowed)
        return

    def raise_it(number: int, frame: object) -> None:
        raise error

    signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, SOON)  # here nobody would hear it either


def complain(name: str, sentence: str) -> None:
    """One line on standard error, whatever is in it."""
    if sys.stderr is None:
        return
    from pieglobalsfind.escape import escape  # late: most commands end without

    with suppress(OSError):
        print(f"{name}: " + escape(sentence).replace("\n", "\\012"), file=sys.stderr)


def said_of(error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    if error.filename is not None:
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
