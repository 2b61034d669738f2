"""Gives GDB the program file that a core file's process began with, where GDB has another or none.

Takes the core file's target. What `rankcc` makes is a library to the process: given to GDB as the program (`gdb solver
core`) its names would be at addresses where nothing is, before every rank's. Without any program GDB reads no library's
symbols, and stacks are wrong. A live process tells GDB by itself. Only a file of the build-id in the core is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Optional

import gdb

from gdbext.gdb_api.run_commands import DebuggerError, execute, quoted
from gdbext.gdb_api.target import path_of
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.locate import identity_by_headers, object_path
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import Absent
from pieglobalsfind.target import Target

PROGRAM_HEADERS = re.compile(r"^3\s+AT_PHDR\s.*\b0x([0-9a-f]+)$", re.MULTILINE)


PAGE = 4096  # the headers lie in the file's first, where linkers put them


def tell_program(target: Target, folders: Sequence[str]) -> None:
    """Where the program's own file is not there any more, GDB keeps what it has.

    `folders` of the user's are searched after the file's own place.
    """
    path = program_of(target, folders)
    if path is None:
        return
    with suppress(DebuggerError):  # what is missing is reported where a rank's symbols are wanted
        execute(f"file {quoted(path)}")
        execute("sharedlibrary")


def program_of(target: Target, folders: Sequence[str]) -> Optional[str]:
    """The file that the process began with; None if GDB has it, or it is unknown."""
    headers = PROGRAM_HEADERS.search(execute("info auxv"))
    base = int(headers.group(1), 16) & -PAGE if headers else 0
    mapping = mapping_at(target.maps(), base)
    if mapping is None:
        return None
    with suppress(RanklensError):
        loaded = LoadedElf(target.read, base)
        if loaded.build_id == build_id_told():
            return None
        place = object_path(target, identity_by_headers(mapping.path, loaded.build_id, loaded.program_headers), folders)
        return None if isinstance(place, Absent) else place
    return None


def build_id_told() -> Optional[bytes]:
    """Of the program that GDB knows; None if it knows none."""
    space = gdb.current_progspace()
    path = path_of(space) if space is not None else ""
    if not path:
        return None
    with ElfFile(path) as file:
        return file.build_id
