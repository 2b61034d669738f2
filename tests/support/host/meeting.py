"""A place where the debuggers of an MPI job wait for one another.

Takes the number of those who must come; they connect to `name` (an abstract Unix socket) and wait for its end.
Never waits for a time: each arrival is an event, and `alive` tells when nobody is left to come.
"""

from __future__ import annotations

import itertools
import os
import select
import socket
import time
from collections.abc import Callable

_numbers = itertools.count()


class Meeting:
    """Use as a context: everybody is let go at its end."""

    def __init__(self) -> None:
        self.name = f"ranklens-test-{os.getpid()}-{next(_numbers)}"
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._guests: list[socket.socket] = []

    def __enter__(self) -> Meeting:
        self._door.bind("\0" + self.name)
        self._door.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let everybody go."""
        for guest in self._guests:
            guest.close()
        self._door.close()

    def wait_for(self, count: int, alive: Callable[[], bool], timeout: float) -> bool:
        """True once `count` have come; False when `timeout` seconds pass, or they are no longer `alive`."""
        deadline = time.monotonic() + timeout
        while len(self._guests) < count and time.monotonic() < deadline and alive():
            if select.select([self._door], [], [], 0.5)[0]:
                guest, _ = self._door.accept()
                self._guests.append(guest)
        return len(self._guests) >= count
