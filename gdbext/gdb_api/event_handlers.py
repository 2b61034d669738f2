"""Connects functions to GDB's events in such a way that a Ctrl-C in the midst of one of them is not lost.

GDB prints the KeyboardInterrupt that leaves such a function, and forgets it: a breakpoint whose commands go on, or a
loop of steps, would go on for ever. One that Python raises at the very beginning of a function leaves it all the same;
the user has to press Ctrl-C again then.
"""

from __future__ import annotations

import _thread
import signal
import time
from collections.abc import Callable
from typing import Any

PAUSE = 0.01  # seconds, in which GDB leaves the event's function; if it does not, there is the same again


def connect(registry: Any, handle: Callable[..., object]) -> None:
    """Have GDB call a function at each event of a kind."""

    def called(*event: Any) -> None:  # none before a prompt
        try:
            handle(*event)
        except KeyboardInterrupt:
            interrupt_again()

    registry.connect(called)


def interrupt_again() -> None:
    """Have GDB get the signal of Ctrl-C once more, when no Python of ours runs."""
    _thread.start_new_thread(_interrupt, (_thread.get_ident(),))


def _interrupt(thread: int) -> None:
    """Signals are for GDB's own thread."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(PAUSE)
    signal.pthread_kill(thread, signal.SIGINT)
