"""A GDB for which libc's debug information has an index, as some distributions have it in their files.

Without one GDB makes it anew at every start, which takes more time than all else that it does before it can be asked.
The copies are not compressed either.
What tests are about, the programs and the runtime, GDB reads as ever.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from pieglobalsfind.elf.file import ElfFile

DEBUG = Path("/usr/lib/debug")
SET = "python gdb.execute('set debug-file-directory {}:' + gdb.parameter('debug-file-directory'))"


def write_starter(gdb: Path, folder: Path) -> None:
    """Write the command `gdb` into a folder, and indexed copies of what the machine has of libc's debug information."""
    for library in libraries():
        with ElfFile(str(library)) as elf:
            build_id = elf.build_id.hex()
        place = Path(".build-id") / build_id[:2] / f"{build_id[2:]}.debug"
        if (DEBUG / place).exists():
            add_index(DEBUG / place, folder / place)
    starter = folder / "gdb"
    starter.write_text(f'#!/bin/sh\nexec {shlex.quote(str(gdb))} -iex {shlex.quote(SET.format(folder))} "$@"\n')
    starter.chmod(0o755)


def libraries() -> set[Path]:
    """The files of libc: what every process has of them, this one too."""
    words = (line.split() for line in Path("/proc/self/maps").read_text().splitlines())
    names = {Path(word[-1]) for word in words if word[-1].startswith("/")}
    return {name for name in names if name.name.startswith(("libc.", "libc-", "libm.", "libm-", "ld-linux", "ld-2"))}


def add_index(debug_file: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    unpacked = ["objcopy", "--decompress-debug-sections", str(debug_file), str(copy)]
    for command in (unpacked, ["gdb-add-index", str(copy)]):
        if subprocess.run(command, capture_output=True, timeout=120).returncode:
            copy.unlink(missing_ok=True)  # GDB finds the file itself, and takes its time
            return
