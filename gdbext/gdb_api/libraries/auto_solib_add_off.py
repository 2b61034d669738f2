"""Reads a starting job's libraries in spite of `set auto-solib-add off`: to GDB, a program in ranks is a library.

Takes the program that is about to run; where it needs a runtime's library, GDB reads libraries until it stops with that
one. The setting is the user's again afterwards.
"""

from __future__ import annotations

import os
from contextlib import suppress

import gdb

from gdbext.gdb_api.run_before_users_commands import output_of
from gdbext.gdb_api.target import path_of
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError

SETTING = "auto-solib-add"
RUNTIMES = (b"librankmpi", b"libsimgrid")
STRINGS = ".dynstr"  # the section with the names of the libraries that a file needs


class UnreadLibraries:
    """Whether the setting is on for the start of a job alone."""

    def __init__(self) -> None:
        self._is_ours = False

    def begin(self) -> None:
        """Before the program is run."""
        program = gdb.current_progspace()
        if gdb.parameter(SETTING) or program is None or not needs_runtime(path_of(program)):
            return
        gdb.execute(f"set {SETTING} on", to_string=True)
        self._is_ours = True

    def settle(self) -> None:
        """At a stop or a prompt: the job has begun or is over, except at a stop before its libraries (`starti`)."""
        is_over = not gdb.selected_inferior().pid
        if self._is_ours and (is_over or any(map(is_runtime, map(path_of, gdb.objfiles())))):
            self._is_ours = False
            output_of(f"set {SETTING} off")


def is_runtime(path: str) -> bool:
    """Whether a file is a runtime's library."""
    return os.path.basename(path).encode(errors="replace").startswith(RUNTIMES)


def needs_runtime(path: str) -> bool:
    """Whether the executable file needs a library of a runtime that makes ranks."""
    with suppress(ObjectFileError), ElfFile(path) as elf:
        strings = elf.section(STRINGS)
        names = elf.section_bytes(strings) if strings is not None else b""
        return any(runtime in names for runtime in RUNTIMES)
    return False
