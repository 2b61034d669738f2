"""GDB's momentary breakpoints, for what a thread is on its way to: the ends of step, next, finish, until and advance.

GDB tells nobody that a step goes on, but lists these: it numbers all of them 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gdbext.quiet import DebuggerError, execute

LISTED = r"0(?:\.\d+)?\s"
LOCATION = r"0\.1\s.*?\b(0x[0-9a-f]+)"


def is_stepping() -> bool:
    """Whether a thread of the selected inferior is on its way to the end of a command, while another may have stopped.

    Not in the midst of `stepi`, which is over after an instruction. GDB makes ready for a longjmp in all others.
    """
    return any(True for _ in _lines())


def own_locations() -> Iterator[int]:
    """Where GDB has breakpoints of its own."""
    for line in _lines():
        found = re.match(LOCATION, line)
        if found is not None:
            yield int(found[1], 16)


def _lines() -> Iterator[str]:
    try:
        listed = execute("maint info breakpoints 0")
    except DebuggerError:  # a GDB that takes no 0 for a number
        listed = execute("maint info breakpoints")
    return (line for line in listed.splitlines() if re.match(LISTED, line))
