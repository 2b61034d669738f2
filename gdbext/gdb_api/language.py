"""The language in which GDB reads expressions, which follows the selected frame, and what names look like in it.

Takes GDB's setting. GDB's Python tells it from version 13 on, before that GDB tells only the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

import gdb

from gdbext.gdb_api.run_commands import execute
from gdbext.gdb_api.target import path_of

CURRENT_LANGUAGE = r'"(?:auto; currently )?([^";]+)"'
C_FAMILY = ("c", "c++")
FORTRAN_FILE = r"(?i)\.(?:f|for|ftn|f\d\d)$"
INTEGERS = {1: "signed char", 2: "short", 4: "int", 8: "long"}  # C's types for Fortran's, by their size
IN_C = {gdb.TYPE_CODE_INT: INTEGERS, gdb.TYPE_CODE_BOOL: INTEGERS, gdb.TYPE_CODE_FLT: {4: "float", 8: "double"}}
LITERALS = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\$\w+|\d[\w.]*"""
MEMBERS = {"fortran": r"%\s*\w+|\.\w+\.", "": r"(?P<member>(?:->|\.)\s*\w+)"}
NAME = r"(?P<name>(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)"


def language() -> str:
    """The name of the language, as `set language` takes it."""
    match = re.search(CURRENT_LANGUAGE, execute("show language"))
    return match.group(1) if match else "c"


@contextmanager
def in_c() -> Iterator[None]:
    """Let GDB read expressions as C's: in Fortran it takes names in small letters, and has other types."""
    with in_language("c", *C_FAMILY):
        yield


@contextmanager
def in_language(name: str, *alike: str) -> Iterator[None]:
    """Let GDB read expressions in a language, or in one that is like it."""
    if language() in (name, *alike):
        yield
        return
    before = gdb.parameter("language")
    execute(f"set language {name}")
    try:
        yield
    finally:
        execute(f"set language {before}")


def is_automatic() -> bool:
    """Whether GDB chooses the language by the selected frame."""
    return gdb.parameter("language") == "auto"


def follow_frame() -> None:
    """Have GDB read expressions in the language of the frame in which it has stopped, if it chooses by frames.

    Before it calls a breakpoint's `stop` it does not: the language is that of the frame that it has shown last.
    """
    if is_automatic():
        execute("set language auto")


def is_fortran(frame: Any) -> bool:
    """Whether a frame's function is of Fortran; before GDB 13 by the name of its file."""
    if hasattr(frame, "language"):
        return bool(frame.language() == "fortran")
    symtab = frame.find_sal().symtab
    return symtab is not None and re.search(FORTRAN_FILE, path_of(symtab)) is not None


def names_pattern() -> str:
    """A pattern of an expression's literals, members and names; a match of a name has it as `name`."""
    return f"{LITERALS}|{MEMBERS.get(language(), MEMBERS[''])}|{NAME}"


def lookup(name: str) -> tuple[Optional[Any], bool]:
    """What GDB means by a name in the innermost frame, if that has debug information, or whether it is a member."""
    try:
        block = gdb.newest_frame().block()
    except RuntimeError:  # of a library without debug information
        return gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name), False
    return gdb.lookup_symbol(name, block)


def text_of(value: gdb.Value) -> str:
    """A string of the language that is set; GDB has Fortran's as they are printed only."""
    try:
        return value.string()
    except gdb.error:
        return value.format_string().strip("'")
