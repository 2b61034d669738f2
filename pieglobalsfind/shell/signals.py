"""End the process on SIGINT, SIGTERM or SIGHUP, with registered cleanup first.

The process ends inside the signal's handler, with the exit status that a shell gives for the signal, and prints
nothing. An exception such as KeyboardInterrupt would pass through libraries, which may lose, replace or print it: in a
destructor, in a callback from C, at the end of a half-written archive.

Only a command calls `install`. In a debugger none of this is active.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, Optional

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEANUP_SECONDS = 1.0  # a terminal may be stopped, or a file's server gone
LISTENER_SECONDS = 25.0  # a listener's own end; Slurm kills after 30

_cleanups: list[Callable[[], object]] = []  # innermost last
_listeners: list[Callable[[int], object]] = []


def install() -> None:
    """Handle the ending signals, except those that the parent process has set to be ignored, as nohup(1) does."""
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, handler)


def handler(number: int, frame: Optional[FrameType]) -> None:
    """Call the innermost listener, which then ends the command itself; without one, end the process."""
    try:
        listener = _listeners.pop()  # at once: another signal may come at any moment
    except IndexError:
        end(number)
    _call_after(LISTENER_SECONDS, lambda: end(number))
    listener(number)


def end(number: int) -> NoReturn:
    """Run the cleanups, innermost first, and exit as if by the signal; a cleanup that hangs is given up."""
    status = exit_status(number)
    _call_after(CLEANUP_SECONDS, lambda: os._exit(status))
    for cleanup in reversed(_cleanups):
        with suppress(Exception):  # there is no one left to report it to
            cleanup()
    os._exit(status)


def exit_status(number: int) -> int:
    """Return the status that a shell gives for a process that the signal `number` has ended."""
    return 128 + number


@contextmanager
def cleanup_on_signal(cleanup: Callable[[], object]) -> Iterator[None]:
    """Call `cleanup` if a signal ends the process inside the block: at any moment, and maybe twice."""
    _cleanups.append(cleanup)
    try:
        yield
    finally:
        _cleanups.remove(cleanup)


@contextmanager
def on_signal(listener: Callable[[int], object]) -> Iterator[None]:
    """Give the first signal's number to `listener` inside the block, and go on; a second signal ends the process.

    `listener` runs between any two steps of the block, so it may only note the signal. The block has to end soon.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        with suppress(ValueError):  # it was called
            _listeners.remove(listener)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Finish a short block that may not be left half done; a signal takes effect after it."""
    numbers: list[int] = []
    try:
        with on_signal(numbers.append):
            yield
    finally:
        if numbers:
            handler(numbers[0], None)


def _call_after(seconds: float, late: Callable[[], object]) -> None:
    signal.signal(signal.SIGALRM, lambda number, frame: late())
    signal.setitimer(signal.ITIMER_REAL, seconds)
