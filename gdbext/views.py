"""Views: copies of ELF files by which GDB finds the globals of the copy that it is told of, not somebody else's.

Takes an object's file; gives the file to load for it, made once and kept in the user's cache as long as it is used. A
view differs in two ways, both about GDB's lookup of names (symtab.c, minsyms.c):

- `DT_SYMBOLIC` in its dynamic section makes GDB look in the file of the current frame first;
- `SHF_EXECINSTR` on all allocated sections makes their symbols text symbols: for a variable with external linkage GDB
  throws the DWARF address away and takes any file's data symbol of that name (it allows for copy relocations).

A file without debug information is loaded as it is: there the data symbols are all that GDB has. Nothing else is
changed, no address moves, and the object's own file is never written to.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from gdbext import kept_views
from pieglobalsfind.cache_folder import cache_folder
from pieglobalsfind.errors import ObjectFileError

FORM = "1"  # changes whenever the same file would give another view

DT_NULL, DT_SYMBOLIC = 0, 16
SHT_DYNAMIC, SHT_NOBITS = 6, 8
SHF_ALLOC, SHF_EXECINSTR = 2, 4
SHN_XINDEX = 0xFFFF
MERGE_TIMEOUT = 120  # seconds

# ELF-64, little-endian (System V gABI, chapters 4 and 5)
_IDENT = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")
_FLAGS_OFFSET = 8  # of sh_flags in a section header


@dataclass(frozen=True)
class Section:
    """One section header; `at` is its position in the file."""

    at: int
    name: bytes
    kind: int
    flags: int
    offset: int
    size: int


def view_of(path: str, build_id: bytes, debug_path: str = "") -> str:
    """The file to load for the object in `path`; `debug_path` is its separate debug file, if it has one.

    Raises `ObjectFileError` if the file can't be read, or its view can't be kept.
    """
    try:
        state = Path(path).stat()
        sections = tuple(read_sections(path))
    except OSError as error:
        raise ObjectFileError(f"cannot read {path}, {error.strerror}", "put the file back, or `set sysroot`") from error
    if not debug_path and not any(_is_debug(section.name) for section in sections):
        return path
    key = "\0".join((FORM, path, debug_path, str(state.st_size), str(state.st_mtime_ns)))
    name = f"{build_id.hex() or 'none'}-{hashlib.sha256(key.encode(errors='surrogateescape')).hexdigest()[:16]}"
    try:
        return str(_kept(name, path, debug_path))
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else "the cache folder"
        raise ObjectFileError(
            f"a copy of {path} for GDB can't be kept in {where}, {error.strerror}", "set XDG_CACHE_HOME"
        ) from error


def _is_debug(name: bytes) -> bool:
    return name.startswith((b".debug_info", b".zdebug_info", b".gnu_debugaltlink"))


def _kept(name: str, path: str, debug_path: str) -> Path:
    """The view in the cache, made if it is not there yet."""
    view = cache_directory() / name / Path(path).name
    if not kept_views.find(view):
        private_directory(view.parent)
        _make(path, debug_path, view)
        kept_views.remove_unused(view.parent.parent)
    return view


def cache_directory() -> Path:
    """Where views are kept: the user's own, nobody else may look into it or write to it."""
    folder = cache_folder("views")
    if folder is None:
        raise ObjectFileError("there is no folder for views of ELF files", "set XDG_CACHE_HOME")
    return private_directory(folder)


def private_directory(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = path.lstat()
    if state.st_uid != os.geteuid():
        raise ObjectFileError(f"the cache folder {path} belongs to somebody else", "set XDG_CACHE_HOME")
    if state.st_mode & 0o077:
        path.chmod(0o700)
    return path


def _make(path: str, debug_path: str, view: Path) -> None:
    """Write the view beside its place and move it there, so that two debuggers never see half a file."""
    descriptor, partial = tempfile.mkstemp(dir=view.parent, prefix="partial-")
    os.close(descriptor)
    try:
        if debug_path:
            merge(path, debug_path, partial)
        else:
            shutil.copyfile(path, partial)
        change(partial)
        Path(partial).replace(view)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
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
    sections = tuple(read_sections(path))
    with open(path, "r+b") as file:
        for section in sections:
            if section.flags & SHF_ALLOC:
                file.seek(section.at + _FLAGS_OFFSET)
                file.write(struct.pack("<Q", section.flags | SHF_EXECINSTR))
            if section.kind == SHT_DYNAMIC:
                spare = _spare_entry(path, section)
                if spare is not None:
                    file.seek(spare)
                    file.write(_DYNAMIC.pack(DT_SYMBOLIC, 0))


def _spare_entry(path: str, section: Section) -> Optional[int]:
    """Where a DT_NULL stands that is not the last entry; the dynamic section must still end with one."""
    with open(path, "rb") as file:
        file.seek(section.offset)
        content = file.read(min(section.size, 1 << 20))
    for at in range(0, len(content) - 2 * _DYNAMIC.size + 1, _DYNAMIC.size):
        tag, _ = _DYNAMIC.unpack_from(content, at)
        if tag in (DT_NULL, DT_SYMBOLIC):
            return section.offset + at if tag == DT_NULL else None
    return None


def read_sections(path: str) -> Iterator[Section]:
    """The section headers of an ELF file; raises `ObjectFileError` if they make no sense."""
    with open(path, "rb") as file:
        header = file.read(64)
        if not header.startswith(_IDENT) or len(header) < 64:
            raise ObjectFileError(f"{path} is no 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", header, 40)
        entry_size, count, names = struct.unpack_from("<HHH", header, 58)
        if not table or not count or entry_size != _SECTION.size or names == SHN_XINDEX:
            return
        file.seek(table)
        content = file.read(count * entry_size)
        if len(content) < count * entry_size or names >= count:
            raise ObjectFileError(f"{path} is damaged: its section headers lie outside the file")
        headers = [_SECTION.unpack_from(content, index * entry_size) for index in range(count)]
        file.seek(headers[names][4])
        strings = file.read(min(headers[names][5], 1 << 20))
    for index, one in enumerate(headers):
        name = strings[one[0] : strings.find(b"\0", one[0])] if one[0] < len(strings) else b""
        yield Section(table + index * entry_size, name, one[1], one[2], one[4], one[5])
