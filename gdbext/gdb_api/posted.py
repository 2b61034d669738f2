"""Posts work to GDB's event loop, and ends a GDB that would crash at exit because of what it has not done yet.

Takes functions. What `gdb.post_event` was given and GDB has not called yet, GDB drops in its own exit handlers, after
it has ended Python, and dies there of SIGSEGV (PyGILState_Ensure): at `quit` in a script of `-x`, for one, which runs
before the event loop. Such a GDB is ended here, once it has let its programs go and is ending Python.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable

import gdb

_waiting = 0
_exit_code = 0


def post(act: Callable[[], object]) -> None:
    """Have GDB call `act` in its event loop."""
    global _waiting
    _waiting += 1

    def call() -> None:
        global _waiting
        _waiting -= 1
        act()

    gdb.post_event(call)


def _ends(event: object) -> None:
    global _exit_code
    _exit_code = getattr(event, "exit_code", 0)


def _end() -> None:
    if _waiting:
        for stream in (gdb.STDOUT, gdb.STDERR, gdb.STDLOG):
            gdb.flush(stream)
        os._exit(_exit_code)


gdb.events.gdb_exiting.connect(_ends)
atexit.register(_end)
