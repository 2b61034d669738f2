"""Keeps a rank's symbols before those of libraries in GDB's list of files, so that names mean the program's first.

Takes the files that GDB shall have for a rank; places them before the libraries that have debug information. It does
so by anchors. GDB looks for static variables, functions and types in the order of its list, and appends to it
whatever it reads; only a separate debug file comes before the file that it belongs to. So every rank that is selected
gets an anchor for each of its files: the sections without symbols (make_view.py), read before the libraries. A rank's
symbols are then the debug file of its anchor. For new anchors GDB reads all libraries again, so they are made for
more and more ranks at a time; but each makes GDB a little slower, so only some ranks keep theirs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import takewhile

import gdb

from gdbext.gdb_api.run_commands import DebuggerError, execute, quoted, silently
from gdbext.gdb_api.target import path_of, program_path
from gdbext.symbols.rank_symbol_files import LoadedSymbols
from pieglobalsfind.elf.file import SHF_EXECINSTR, ElfFile
from pieglobalsfind.errors import ObjectFileError

FIRST, MOST = 8, 64  # ranks that get anchors at once; the most that have some

Place = tuple[str, int]  # an anchor's file, and its bias


class Anchors:
    """Those of one inferior."""

    def __init__(self) -> None:
        self._objfiles: dict[Place, gdb.Objfile] = {}
        self._together = FIRST  # ranks that get them the next time

    def missing_for(self, placed: tuple[LoadedSymbols, ...], own: Collection[str]) -> int:
        """How many ranks shall get anchors before these symbols are placed; 0 if these have theirs, or need none.

        `own`: the files that GDB has because of us.
        """
        if all(map(self._has, leading_places(placed))) or not is_any_library_first(own):
            return 0
        return self._together

    def _has(self, place: Place) -> bool:
        anchor = self._objfiles.get(place)
        return anchor is not None and anchor.is_valid() and anchor.progspace == gdb.current_progspace()

    def count_for(self, placed: tuple[LoadedSymbols, ...]) -> int:
        """How many of the first files have anchors, one after the other as the files have to be."""
        places, order, count = leading_places(placed), gdb.objfiles(), 0
        at = [order.index(self._objfiles[place]) for place in places if self._has(place)]
        while count < len(at) and self._has(places[count]) and at[count] == max(at[: count + 1]):
            count += 1
        return count

    def add(self, ranks: Iterable[tuple[LoadedSymbols, ...]]) -> None:
        """Make anchors for the symbols of ranks; GDB has no library's symbols just now."""
        for placed in ranks:
            for place in leading_places(placed):
                if not self._has(place):
                    add_symbol_file(*place)
                    self._objfiles[place] = gdb.objfiles()[-1]
        self._together = min(2 * self._together, MOST)

    def make_room(self, used: tuple[LoadedSymbols, ...]) -> None:
        """Remove all anchors but those of the symbols that GDB has, once there are many."""
        used_places = {place_of(loaded_symbols) for loaded_symbols in used}
        if len(self._objfiles) + self._together > MOST:
            self._remove([place for place in self._objfiles if place not in used_places])

    def forget(self) -> None:
        """Remove all."""
        self._remove(list(self._objfiles))
        self._together = FIRST

    def _remove(self, places: list[Place]) -> None:
        for place in places:
            if self._objfiles.pop(place).is_valid():
                remove_symbol_file_at(*place)

    def inherit(self, parent: Anchors) -> None:
        """Know those that GDB goes on with in a forked process."""
        here = gdb.objfiles()
        self._objfiles = {place: anchor for place, anchor in parent._objfiles.items() if anchor in here}

    def has(self, loaded_symbols: LoadedSymbols) -> bool:
        """Whether symbols have an anchor."""
        return self._has(place_of(loaded_symbols))

    def place(self, loaded_symbols: LoadedSymbols) -> gdb.Objfile:
        """Let GDB read symbols as the debug file of their anchor."""
        anchor = self._objfiles[place_of(loaded_symbols)]
        execute("maintenance flush symbol-cache")  # GDB does so after it has looked for breakpoints' places
        silently(lambda: anchor.add_separate_debug_file(loaded_symbols.path))
        return [objfile for objfile in gdb.objfiles() if objfile.owner == anchor][-1]

    def remove(self, loaded_symbols: LoadedSymbols) -> None:
        """Remove symbols; of two places of a file those that GDB has had for longer."""
        same = [objfile for objfile in gdb.objfiles() if path_of(objfile) == loaded_symbols.path]
        if self.has(loaded_symbols) and any(self._objfiles[place_of(loaded_symbols)] == one.owner for one in same):
            remove_symbol_file_at(*place_of(loaded_symbols))  # a debug file comes before its owner
        elif same and same[0].owner is None:
            with suppress(DebuggerError):  # GDB may have dropped it by itself, with the process
                execute(f"remove-symbol-file {quoted(loaded_symbols.path)}")
        elif same:
            self.remove_newest(loaded_symbols)

    def remove_newest(self, loaded_symbols: LoadedSymbols) -> None:
        """Remove symbols that have no anchor; an anchor at the same place would go instead."""
        self._remove([place for place in self._objfiles if place[1] == loaded_symbols.bias])
        remove_symbol_file_at(loaded_symbols.path, loaded_symbols.bias)


def place_of(loaded_symbols: LoadedSymbols) -> Place:
    """Return where the symbols' anchor is."""
    return loaded_symbols.anchor, loaded_symbols.bias


def leading_places(placed: tuple[LoadedSymbols, ...]) -> list[Place]:
    """Return where the anchors of the first files are, up to a file that can have none."""
    return [place_of(loaded_symbols) for loaded_symbols in takewhile(lambda one: bool(one.anchor), placed)]


def add_symbol_file(path: str, bias: int) -> None:
    """Let GDB read symbols that lie at a bias."""
    execute(f"add-symbol-file {quoted(path)} -o {bias:#x}")


def remove_symbol_file_at(path: str, bias: int) -> None:
    """Remove one of several places of a file."""
    with suppress(DebuggerError):  # GDB may have dropped it by itself, with the process
        execute(f"remove-symbol-file -a {bias + code_of(path):#x}")


def code_of(path: str) -> int:
    """The p_vaddr of an instruction in a file, by which GDB tells two places of it apart."""
    with ElfFile(path) as file:
        return next(section.address for section in file.sections if section.flags & SHF_EXECINSTR)


def is_any_library_first(own: Collection[str]) -> bool:
    """Whether GDB has debug information of libraries, and these may be read again.

    Not where the program itself has some: GDB takes global variables from that first, unless they are in a file of its
    own with `DT_SYMBOLIC` (views.py), which a debug file is not. Nor where libraries are in several namespaces of the
    dynamic linker: GDB 13 aborts if they are read again while the program runs.
    """
    paths = set(described_files(own))
    libraries = [path for path in map(path_of, gdb.objfiles()) if path not in own]
    return bool(paths) and program_path() not in paths and len(set(libraries)) == len(libraries)


def described_files(own: Collection[str]) -> Iterator[str]:
    """Yield the files of which GDB has debug information, but for `own`."""
    for objfile in gdb.objfiles():
        path, owner = path_of(objfile), objfile.owner
        if path in own:
            continue
        if owner is None:
            if has_debug_information(path):
                yield path
        elif path.startswith("/"):  # GDB names what it has unpacked of the file itself otherwise
            yield path_of(owner)


def has_debug_information(path: str) -> bool:
    """Whether a file on this machine has debug information itself."""
    with suppress(OSError):
        return has_debug_sections(path, os.stat(path).st_mtime_ns)
    return False


@cache
def has_debug_sections(path: str, _modified: int) -> bool:
    """Whether the file that was there at a time has sections with debug information."""
    with suppress(ObjectFileError), ElfFile(path) as file:
        return any(section.name in (".debug_info", ".zdebug_info") for section in file.sections)
    return False
