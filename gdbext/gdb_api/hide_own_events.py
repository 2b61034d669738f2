"""Hides the extension's own breakpoints from scripts that listen to GDB's breakpoint events.

Takes GDB's registries of events; puts in their place what passes on the events of users' breakpoints alone. Handlers
that a script has connected before the extension was sourced hear of all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gdb

from gdbext.gdb_api.breakpoint_locations import Own

OF_BREAKPOINTS = ("breakpoint_created", "breakpoint_modified", "breakpoint_deleted")

Handler = Callable[[gdb.Breakpoint], object]


class UsersEvents:
    """In place of one registry."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self._connected: list[tuple[Handler, Handler]] = []

    def connect(self, handler: Handler) -> None:
        """Call the handler with each breakpoint of the user's that an event is about."""
        if not callable(handler):
            raise TypeError("Function is not callable")

        def passed(breakpoint: gdb.Breakpoint) -> None:
            if not isinstance(breakpoint, Own):
                handler(breakpoint)

        self._registry.connect(passed)
        self._connected.append((handler, passed))

    def disconnect(self, handler: Handler) -> None:
        """Call it no more; of one that was connected before the extension was there, GDB itself knows."""
        for pair in self._connected:
            if pair[0] == handler:
                self._connected.remove(pair)
                self._registry.disconnect(pair[1])
                return
        self._registry.disconnect(handler)


def hide_own_events() -> None:
    """After the extension has connected its own handlers."""
    for name in OF_BREAKPOINTS:
        setattr(gdb.events, name, UsersEvents(getattr(gdb.events, name)))
