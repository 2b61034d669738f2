"""How a command ends that is told to, by Ctrl-C, SIGTERM or a terminal that goes away: then and there, by exit status.

Takes what is to be undone before; gives the signal's status, as a shell tells it, and never a word. It ends the process
from the signal's handler. As an exception the signal would pass through libraries, each of which may lose it, turn it
into another, or complain of it: in a destructor, a callback from C, the end of a half-written archive.

Where nobody has called `hear`, as in a debugger, nothing of this happens. It imports what Python itself has loaded.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Optional

TOLD_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNDOING = 1.0  # seconds for what is to be undone: a terminal may be stopped, or a file's server gone
LISTENING = 25.0  # seconds for a listener that ends on its own, fewer than Slurm gives: its reader may have stopped

_undone: list[Callable[[], object]] = []  # innermost last
_listeners: list[Callable[[int], object]] = []


def hear() -> None:
    """From now on; but what whoever has started us wants to be ignored is ignored, as by nohup(1)."""
    for number in TOLD_BY:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, told)


def told(number: int, frame: Optional[FrameType]) -> None:
    """The signals' handler: a listener sees to the end, if there is one."""
    try:
        listener = _listeners.pop()
    except IndexError:
        end(number)
    else:
        in_time(LISTENING, lambda: end(number))
        listener(number)


def end(number: int) -> None:
    status = status_of(number)
    in_time(UNDOING, lambda: os._exit(status))
    for undo in reversed(_undone):
        try:  # noqa: SIM105 - `contextlib` takes longer to load than this
            undo()
        except Exception:  # noqa: PERF203
            pass  # what can't be undone can't be told either
    os._exit(status)


def in_time(seconds: float, late: Callable[[], object]) -> None:
    """`late` is called unless the process has ended by then."""
    signal.signal(signal.SIGALRM, lambda number, frame: late())
    signal.setitimer(signal.ITIMER_REAL, seconds)


def status_of(number: int) -> int:
    """As a shell has it of a process that a signal has ended."""
    return 128 + number


class Undone:
    """`undo` is called if the process is told to end while this is open: at any moment, and maybe twice."""

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo = undo

    def __enter__(self) -> None:
        _undone.append(self._undo)

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _undone.remove(self._undo)


class Heard:
    """While this is open, the first signal does not end the process: `listener` gets its number, and sees to the end.

    It is called between any two steps of what is inside, and does next to nothing. A second signal ends the process.
    """

    def __init__(self, listener: Callable[[int], object]) -> None:
        self._listener = listener

    def __enter__(self) -> None:
        _listeners.append(self._listener)

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _listeners[:] = [one for one in _listeners if one is not self._listener]


class Finished(Heard):
    """What is inside is short, and must not be left half done: a signal has its way behind it."""

    def __init__(self) -> None:
        super().__init__(self._note)
        self._number = 0

    def _note(self, number: int) -> None:
        self._number = number

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._number:
            told(self._number, None)
