"""Enables users' breakpoints again that GDB disables for good because it does not find their places.

That is a breakpoint at `*EXPRESSION` (`break *solve+4`) where ranks' symbols go, and one that got a condition while it
was pending (`condition 1 turn > 2`): GDB looks for both whenever symbols change, as where the program is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gdb

from gdbext.breakpoints.followed_breakpoints import at_expression, follows
from gdbext.selection.inferiors import Inferiors


class DisabledByGdb:
    """Those of one GDB that wait for symbols."""

    def __init__(self, inferiors: Inferiors, on_change: Callable[[gdb.Breakpoint], None]) -> None:
        self._inferiors = inferiors
        self._on_change = on_change  # called where GDB's own event comes amid a move of symbols, and means nothing
        self._waiting: list[gdb.Breakpoint] = []
        self._pending: dict[int, gdb.Breakpoint] = {}  # enabled ones with conditions, as GDB reported them last
        inferiors.before_symbols, inferiors.without_symbols = self._enable, self._noted

    def begin(self) -> None:
        """Note those at expressions that are enabled, before the program is run."""
        self._waiting += enabled_at_expressions()

    def notice(self, user: gdb.Breakpoint) -> None:
        """GDB tells of a change. It tells nothing where it disables a pending one itself, before it finds the place."""
        if user.enabled and user.pending and user.condition:
            self._pending[user.number] = user
        elif user.enabled or user.pending or not user.condition:
            self._pending.pop(user.number, None)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Ranks' symbols go inside."""
        enabled = enabled_at_expressions()
        yield
        self._waiting += [user for user in enabled if user.is_valid() and not user.enabled]

    def _enable(self) -> None:
        """Before GDB reads symbols of a rank, and looks for their places again."""
        for user in (*self._waiting, *self._pending.values()):
            if user.is_valid() and not user.enabled:
                user.enabled = True
                self._on_change(user)

    def end(self) -> None:
        """The program has stopped; if GDB has symbols of a rank, the user decides what is enabled."""
        if self._waiting and self._inferiors.state().focus.paths:
            self._waiting = []


def enabled_at_expressions() -> list[gdb.Breakpoint]:
    """Return those of the user's that are enabled, and stand at an expression's value."""
    return [user for user in gdb.breakpoints() if follows(user) and user.enabled and at_expression(user)]
