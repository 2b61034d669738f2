"""The last command line that the user typed, from GDB's history: hooks do not get their command's arguments.

Takes GDB's history of commands, which has what is typed at a terminal; scripts and front ends leave none there.
"""

from __future__ import annotations

import re
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import execute

ONE = r"(?:\d+|\$\w+)"
LIST = rf"{ONE}(?:-{ONE})?(?:[ ,]+{ONE}(?:-{ONE})?)*"


def typed_numbers(command: str) -> Optional[list[range]]:
    """The numbers and ranges that the user has typed after a command (a regular expression).

    None if it was typed without any, in another way, or not at all.
    """
    history = execute("show commands").splitlines()
    match = re.fullmatch(rf" *\d+ +{command} +({LIST}) *", history[-1]) if history else None
    return None if match is None else [numbers(word) for word in re.split(r"[ ,]+", match[1])]


def typed_option(command: str, option: str) -> str:
    """The word after an option that the user has typed with a command (both are regular expressions), or ""."""
    history = execute("show commands").splitlines()
    match = re.fullmatch(rf" *\d+ +(?:{command}) +(?:.* )?{option} +(\w+).*", history[-1]) if history else None
    return "" if match is None else match[1]


def numbers(text: str) -> range:
    """`3`, `$bpnum` or `2-4`."""
    first, _, last = text.partition("-")
    return range(number(first), number(last or first) + 1)


def number(text: str) -> int:
    """Return the number that GDB makes of a word."""
    return int(gdb.parse_and_eval(text))
