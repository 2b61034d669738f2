"""Asks the user a question as GDB does before it deletes something: its Python has no command for that."""

from __future__ import annotations

import sys

import gdb

from gdbext.gdb_api.front_end import is_batch, speaks_mi

HINT = "(y or n) "


def query(question: str) -> bool:
    """Whether the user says yes; the answer is yes where GDB does not ask, or no user is there to answer."""
    if not gdb.parameter("confirm"):
        return True
    if is_batch() or speaks_mi() or not sys.stdin.isatty():
        gdb.write(f"{question}{HINT}[answered Y; input not from terminal]\n")
        return True
    while True:
        try:
            answer = input(question + HINT).strip().lower()
        except EOFError:
            return True
        if answer[:1] in ("y", "n"):
            return answer[0] == "y"
        gdb.write("Please answer y or n.\n")
