"""How far a long reading is: reported to a listener, and shown on a terminal.

Takes the ranks (or whatever is gone through) and hands them on one by one. Nothing is shown in the first second, nor
in a pipe, and nothing on standard output; however the reading ends, no line of it stays on the screen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Timer
from typing import TYPE_CHECKING, Callable, Optional, TypeVar

from pieglobalsfind.shell.signals import cleanup_on_signal, deferred_signals

from .restore import ONE_LINE, Drawn

if TYPE_CHECKING:
    from rich.progress import TaskID

Item = TypeVar("Item")
Listener = Callable[[str, int, int], None]  # what is read, how much of it is done, how much there is (0: unknown)

PATIENCE = 1.0  # seconds without a word


def ignore(what: str, done: int, total: int) -> None:
    """Listens to nothing."""


_listener: ContextVar[Listener] = ContextVar("listener", default=ignore)


def through(items: Iterable[Item], what: str, total: int = 0) -> Iterator[Item]:
    """The items; the listener hears of each before it is handed on, and may raise to end the reading.

    `total`: how many they are, where they don't know it themselves.
    """
    tell = _listener.get()
    total = len(items) if isinstance(items, Sized) else total
    for number, item in enumerate(items):
        tell(what, number, total)
        yield item
    tell(what, total, total)


def begin(what: str) -> None:
    """Something of unknown length begins."""
    _listener.get()(what, 0, 0)


def of_bytes(what: str) -> Callable[[int, int], None]:
    """Return what takes how many bytes of how many are done, and tells it in MB."""
    tell = _listener.get()
    return lambda done, total: tell(f"{what}, MB", done >> 20, total >> 20)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """`listener` hears of what this thread reads inside."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def shown() -> Iterator[None]:
    """A bar on standard error while what is done inside lasts, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    bar = ProgressBar()
    try:
        with cleanup_on_signal(bar.wipe), told_to(bar.update):
            yield
    finally:
        bar.close()


class ProgressBar:
    """One line that says what is read and how far that is; it appears after `PATIENCE`."""

    def __init__(self) -> None:
        from rich.console import Console  # late: most readings are over, or unwatched, before it would be shown
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._task: Optional[TaskID] = None
        self._lock = Lock()
        self._closed = False
        self._drawn = Drawn(sys.stderr.fileno(), ONE_LINE)
        self._is_drawn = False
        self._timer = Timer(PATIENCE, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def update(self, what: str, done: int, total: int) -> None:
        """Show how far the reading is."""
        if self._task is None or self._progress.tasks[0].description != what:
            with self._lock:
                if self._task is not None:
                    self._progress.remove_task(self._task)
                self._task = self._progress.add_task(what, total=total or None)
        self._progress.update(self._task, completed=done)

    def _appear(self) -> None:
        with self._lock:
            if not self._closed:
                self._is_drawn = True
                self._progress.start()

    def close(self) -> None:
        """Take the line off the screen; it will not come back."""
        self._timer.cancel()
        with deferred_signals(), self._lock:  # rich goes to the next line first, and takes the bar away from there
            self._closed = True
            self._progress.stop()
            self._is_drawn = False

    def wipe(self) -> None:
        """The same at any moment, even if another thread holds the lock: nothing is drawn any more, ever."""
        if self._is_drawn:
            self._drawn.undo()
