"""Users' breakpoints at `*EXPRESSION` (`break *solve+4`), where ranks' symbols go and come.

GDB evaluates the expression anew whenever symbols change, and disables a breakpoint for good whose expression names
what is not there, as it is when the program is run again. What GDB has disabled is enabled again as symbols come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import gdb

from gdbext.breakpoints.followed_breakpoints import at_expression, follows
from gdbext.selection.inferiors import Inferiors


class AddressBreakpoints:
    """Those of one GDB that wait for symbols."""

    def __init__(self, inferiors: Inferiors) -> None:
        self._inferiors = inferiors
        self._waiting: list[gdb.Breakpoint] = []
        inferiors.before_symbols, inferiors.without_symbols = self._enable, self._noted

    def begin(self) -> None:
        """Note those that are enabled, before the program is run."""
        self._waiting += enabled_at_expressions()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Ranks' symbols go inside."""
        enabled = enabled_at_expressions()
        yield
        self._waiting += [user for user in enabled if user.is_valid() and not user.enabled]

    def _enable(self) -> None:
        """Before GDB reads symbols of a rank, and evaluates the expressions with them."""
        for user in self._waiting:
            if user.is_valid() and not user.enabled:
                user.enabled = True

    def end(self) -> None:
        """The program has stopped; if GDB has symbols of a rank, the user decides what is enabled."""
        if self._waiting and self._inferiors.state().focus.paths:
            self._waiting = []


def enabled_at_expressions() -> list[gdb.Breakpoint]:
    """Return those of the user's that are enabled, and stand at an expression's value."""
    return [user for user in gdb.breakpoints() if follows(user) and user.enabled and at_expression(user)]
