"""Views: copies of ELF files by which GDB finds the globals of the copy that it shall read, not another one's.

Takes an object's file; gives the file to load for it, made once and kept in the user's cache as long as it is used. A
view differs in two ways, both about GDB's lookup of names (symtab.c, minsyms.c):

- `DT_SYMBOLIC` in its dynamic section makes GDB look in the file of the current frame first;
- `SHF_EXECINSTR` on all allocated sections makes their symbols text symbols: for a variable with external linkage GDB
  throws the DWARF address away and takes any file's data symbol of that name (it allows for copy relocations).

A file without debug information is loaded as it is: there the data symbols are all that GDB has. Nothing else is
changed, no address moves, and the object's own file is never written to.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gdbext.symbols import view_cache
from pieglobalsfind.cache.path import cache_folder
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError

FORM = 3  # changes whenever the same file would give another view
DEBUG_SECTIONS = (".debug_info", ".zdebug_info", ".gnu_debugaltlink")


def view_of(path: str, build_id: bytes, debug_path: str = "") -> str:
    """The file to load for the object in `path`; `debug_path` is its separate debug file, if it has one.

    Raises `ObjectFileError` if the file can't be read, or its view can't be kept.
    """
    try:
        name = _name(path, build_id, debug_path)
        with ElfFile(path) as elf:
            has_debug = bool(debug_path) or any(section.name.startswith(DEBUG_SECTIONS) for section in elf.sections)
    except OSError as error:
        raise ObjectFileError(f"cannot read {path}, {error.strerror}", "put the file back, or `set sysroot`") from error
    if not has_debug:
        return path
    try:
        return _kept(name, path, debug_path)
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else "the cache folder"
        raise ObjectFileError(
            f"a copy of {path} for GDB can't be kept in {where}, {error.strerror}", "set XDG_CACHE_HOME"
        ) from error


def _name(path: str, build_id: bytes, debug_path: str) -> str:
    """Of the view's folder: which files they are, and when they were written to."""
    states = [os.stat(file) for file in (path, debug_path) if file]
    numbers = [
        FORM,
        *(number for state in states for number in (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)),
    ]
    return "-".join([build_id.hex() or "none", *(f"{number:x}" for number in numbers)])


def _kept(name: str, path: str, debug_path: str) -> str:
    """The view in the cache, made if it is not there yet."""
    views = cache_directory()
    view = os.path.join(views, name, utf8_name(os.path.basename(path)))
    if not view_cache.find(view):
        from gdbext.symbols.make_view import make

        private_directory(os.path.dirname(view))
        make(path, debug_path, view, anchor_of(view))
        view_cache.remove_unused(views)
    return view


def anchor_of(view: str) -> str:
    """The view's anchor (lookup_order.py), made with it."""
    return f"{view}.anchor"


def utf8_name(name: str) -> str:
    """A name that GDB takes from Python: a byte that is not UTF-8 is written as %XX."""
    return "".join(f"%{ord(sign) - 0xDC00:02X}" if "\udc80" <= sign <= "\udcff" else sign for sign in name)


def cache_directory() -> str:
    """Where views are kept: the user's own folder, closed to other users."""
    folder = cache_folder("views")
    if folder is None:
        raise ObjectFileError("no folder can keep views of ELF files", "set XDG_CACHE_HOME")
    return private_directory(folder)


def private_directory(path: str) -> str:
    """The folder, which is made if it is not there; raises `ObjectFileError` if it is another user's."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, mode=0o700)
    state = os.lstat(path)
    if state.st_uid != os.geteuid():
        raise ObjectFileError(f"the cache folder {path} belongs to another user", "set XDG_CACHE_HOME")
    if state.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path
