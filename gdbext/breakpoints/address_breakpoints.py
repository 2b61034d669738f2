"""Users' breakpoints at `*EXPRESSION` (`break *solve+4`), where the program is run again.

GDB evaluates the expression anew for each process, before ranks have symbols, and disables a breakpoint for good whose
expression names what is not there. Those that were enabled are enabled again as symbols come.
"""

from __future__ import annotations

import gdb

from gdbext.breakpoints.followed import follows
from gdbext.selection.inferiors import Inferiors


class AddressBreakpoints:
    """Those of one GDB that wait for symbols."""

    def __init__(self, inferiors: Inferiors) -> None:
        self._inferiors = inferiors
        self._waiting: list[gdb.Breakpoint] = []
        inferiors.before_symbols = self._enable

    def begin(self) -> None:
        """Note those that are enabled, before the program is run."""
        self._waiting = [
            user for user in gdb.breakpoints() if follows(user) and user.enabled and (user.location or "")[:1] == "*"
        ]

    def _enable(self) -> None:
        """Before GDB reads symbols of a rank, and evaluates the expressions with them."""
        for user in self._waiting:
            if user.is_valid() and not user.enabled:
                user.enabled = True

    def end(self) -> None:
        """The program has stopped; if GDB has symbols of a rank, the user decides what is enabled."""
        if self._waiting and self._inferiors.state().focus.paths:
            self._waiting = []
