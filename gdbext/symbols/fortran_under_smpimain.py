"""Sets GDB's language to Fortran if the program that SimGrid's `smpimain` is about to load is Fortran.

Takes what GDB is about to run; sets GDB's language. GDB reads the condition of a pending breakpoint later, in the
language in which it was typed; that of a process is its program's from the start.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress

import gdb

from gdbext.gdb_api.language import is_automatic
from gdbext.gdb_api.run_commands import execute
from gdbext.gdb_api.target import program_path
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError

LAUNCHER = "smpimain"
FORTRAN_MAIN = b"\0user_main_\0"  # what SMPI's Fortran compilers make of the main program, and smpimain looks for first
FORTRAN = "fortran"
ARGUMENTS = r'(?s) is "(.*)"\.'  # GDB's Python has them only after the user has set them


def speak_its_language() -> str:
    """Have GDB read expressions as Fortran's if the program is, and nothing runs yet; "" if it stays as it is."""
    path = program_path()
    if gdb.selected_inferior().pid or not path.endswith(f"/{LAUNCHER}") or not is_automatic():
        return ""
    arguments = re.search(ARGUMENTS, execute("show args"))
    if arguments is None or not _is_fortran(arguments[1]):
        return ""
    execute(f"set language {FORTRAN}")
    return FORTRAN


def _is_fortran(arguments: str) -> bool:
    """Whether the first argument that is a program is one of Fortran's."""
    with suppress(ValueError):
        for word in shlex.split(arguments):
            with suppress(ObjectFileError), ElfFile(os.path.abspath(word)) as elf:
                names = elf.section(".dynstr")
                return names is not None and FORTRAN_MAIN in elf.section_bytes(names)
    return False
