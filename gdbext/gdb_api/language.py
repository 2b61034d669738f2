"""The language in which GDB reads expressions, which follows the selected frame.

Takes GDB's setting. GDB's Python tells it from version 13 on, before that GDB tells only the user.
"""

from __future__ import annotations

import re

import gdb

from gdbext.gdb_api.run_gdb import execute
from gdbext.gdb_api.target import path_of
from pieglobalsfind.hints import Any

CURRENT_LANGUAGE = r'"(?:auto; currently )?([^";]+)"'
C_FAMILY = ("c", "c++")
FORTRAN_FILE = r"(?i)\.(?:f|for|ftn|f\d\d)$"


def language() -> str:
    """The name of the language, as `set language` takes it."""
    found = re.search(CURRENT_LANGUAGE, execute("show language"))
    return found.group(1) if found else "c"


def is_automatic() -> bool:
    """Whether GDB chooses the language by the selected frame."""
    return gdb.parameter("language") == "auto"


def is_fortran(frame: Any) -> bool:
    """Whether a frame's function is of Fortran; before GDB 13 by the name of its file."""
    if hasattr(frame, "language"):
        return bool(frame.language() == "fortran")
    symtab = frame.find_sal().symtab
    return symtab is not None and re.search(FORTRAN_FILE, path_of(symtab)) is not None
