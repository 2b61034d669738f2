"""Makes views (views.py): joins a file with its debug information, and changes what GDB's lookup of names goes by.

Takes ELF files; writes one. Imported where a view has to be made: found ones need none of this.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from contextlib import suppress
from typing import Optional

from pieglobalsfind.elf.file import SECTION_HEADER_SIZE, SHF_ALLOC, SHF_EXECINSTR, ElfFile, Section
from pieglobalsfind.errors import ObjectFileError

DT_NULL, DT_SYMBOLIC = 0, 16
SHT_DYNAMIC = 6
MERGE_TIMEOUT = 120  # seconds

_DYNAMIC = struct.Struct("<qQ")  # System V gABI, chapter 5
_FLAGS_OFFSET = 8  # of sh_flags in a section header


def make(path: str, debug_path: str, view: str) -> None:
    """Write the view beside its place and move it there, so that two debuggers never see half a file."""
    descriptor, partial = tempfile.mkstemp(dir=os.path.dirname(view), prefix="partial-")
    os.close(descriptor)
    try:
        if debug_path:
            merge(path, debug_path, partial)
        else:
            shutil.copyfile(path, partial)
        change(partial)
        os.replace(partial, view)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def merge(path: str, debug_path: str, result: str) -> None:
    """Join a stripped file and its debug file: GDB would keep the debug file's symbols apart, at the wrong copy."""
    tool = shutil.which("eu-unstrip")
    if tool is None:
        raise ObjectFileError(f"{path} has a separate debug file, and eu-unstrip is missing", "install elfutils")
    command = [tool, "--force", "-o", result, path, debug_path]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MERGE_TIMEOUT, check=False
    )
    if done.returncode:
        raise ObjectFileError(f"cannot join {path} and {debug_path}, {done.stderr.strip()}")


def change(path: str) -> None:
    """Make the ELF file `path` a view of itself."""
    with ElfFile(path) as elf, open(path, "r+b") as file:
        for index, section in enumerate(elf.sections):
            if section.flags & SHF_ALLOC:
                file.seek(elf.header.section_offset + index * SECTION_HEADER_SIZE + _FLAGS_OFFSET)
                file.write(struct.pack("<Q", section.flags | SHF_EXECINSTR))
            if section.type == SHT_DYNAMIC:
                spare = _spare_entry(elf, section)
                if spare is not None:
                    file.seek(spare)
                    file.write(_DYNAMIC.pack(DT_SYMBOLIC, 0))


def _spare_entry(elf: ElfFile, section: Section) -> Optional[int]:
    """Where a DT_NULL stands that is not the last entry; the dynamic section must still end with one."""
    content = elf.section_bytes(section)
    for at in range(0, len(content) - 2 * _DYNAMIC.size + 1, _DYNAMIC.size):
        tag, _ = _DYNAMIC.unpack_from(content, at)
        if tag in (DT_NULL, DT_SYMBOLIC):
            return section.offset + at if tag == DT_NULL else None
    return None
