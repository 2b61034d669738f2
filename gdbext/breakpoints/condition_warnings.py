"""Warns of conditions of watchpoints and catchpoints that GDB would test in another rank than the one that stops.

Takes such a breakpoint when it has changed; prints a sentence, once for each condition.
"""

from __future__ import annotations

import re
from typing import Any, Optional

import gdb

from gdbext.gdb_api.language import lookup, names_pattern

NAMES_A_RANK = r"\$_rank(_in)?\b"  # as of the last stop


class ConditionWarnings:
    """Of which breakpoints' conditions something was said."""

    def __init__(self) -> None:
        self._said = set[tuple[int, str]]()

    def check(self, breakpoint: gdb.Breakpoint) -> None:
        """Warn of a watchpoint's or catchpoint's condition that is of another rank than the one that stops."""
        if not breakpoint.is_valid() or not breakpoint.visible or not breakpoint.condition:
            return
        about = breakpoint.number, breakpoint.condition
        sentence = "" if about in self._said else sentence_about(breakpoint, breakpoint.condition)
        if sentence:
            self._said.add(about)
            gdb.write(f"[{sentence}]\n")


def sentence_about(breakpoint: gdb.Breakpoint, condition: str) -> str:
    """What is wrong with a condition, and what to type instead; "" if nothing is."""
    if re.search(NAMES_A_RANK, condition):
        return (
            f"The condition of {breakpoint.number} is tested with the rank that was selected last: "
            "use $_rank_of($sp), which is the one that stops"
        )
    variable = variable_in(condition) if breakpoint.type == getattr(gdb, "BP_CATCHPOINT", None) else None
    if variable is not None:
        return (
            f"The condition of {breakpoint.number} reads {variable.name} of the rank that is selected now, whichever "
            f'rank stops: use *({variable.type} *)$_rankaddr("{variable.name}", $_rank_of($sp)), which is that rank\'s'
        )
    return ""


def variable_in(condition: str) -> Optional[Any]:
    """The symbol of the first global variable that a condition names."""
    if gdb.selected_thread() is None:
        return None
    for match in re.finditer(names_pattern(), condition):
        symbol = lookup(match["name"])[0] if match["name"] else None
        if symbol is not None and symbol.is_variable and not symbol.needs_frame:
            return symbol
    return None
