"""Names for addresses: the symbol of the object's file, and the source line of its debug information.

Takes a target, its rank table and an `Owner`; gives a `Symbol`, or why there is none. Names are looked up in the
original only: whose copy an address is in was decided before.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Optional, Union

from pieglobalsfind.cache import elf_file_cache
from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.locate import LoadedIdentity, debug_path, identity_by_headers, identity_of, object_path
from pieglobalsfind.elf.symbol_table import KIND, FileSymbol, Symbols, read_symbols
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Absent, Owner, RankTable, Region, Symbol
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.target import Target

if TYPE_CHECKING:  # DWARF is read only when a name or a line is asked for
    from pieglobalsfind.dwarf.debug_info import DebugInfo
    from pieglobalsfind.dwarf.types import Variable, Variables

_NAMELESS = Absent("no symbol covers it")
_NO_PLACE = Absent("it lies in no file")
_BETWEEN = Absent("it lies between the segments of its file")


@dataclass(frozen=True)
class FileAddress:
    """A vaddr of a file, or with `is_tls` an offset in its thread-local block."""

    names: FileSymbols
    vaddr: int
    kind: str
    is_tls: bool = False


class Symbolizer:
    """Names for one target; files are opened when first asked for, and what was found is kept."""

    def __init__(self, target: Target, table: RankTable) -> None:
        self._target = target
        self._table = table
        self._objects: dict[int, FileSymbols] = {}
        self._libraries: dict[int, Union[tuple[FileSymbols, int], Absent]] = {}
        self._named: dict[tuple[FileSymbols, int, str], Union[Symbol, Absent]] = {}

    def symbol(self, owner: Owner) -> Union[Symbol, Absent]:
        """The symbol that covers an owner's address, with its line if debug information has one."""
        place = self._place(owner)
        if isinstance(place, Absent):
            return place
        key = (place.names, place.vaddr, place.kind)
        if key not in self._named:
            self._named[key] = place.names.symbol(place)
        return self._named[key]

    def place_in_file(self, owner: Owner) -> Union[tuple[str, int], Absent]:
        """The file that code or data is from, and its p_vaddr there."""
        place = self._place(owner)
        if isinstance(place, Absent):
            return place
        return (place.names.path, place.vaddr) if isinstance(place.names.path, str) else place.names.path

    def _place(self, owner: Owner) -> Union[FileAddress, Absent]:
        if owner.kind in ("range", "unmapped"):
            return _BETWEEN if owner.object is not None else _NO_PLACE
        if owner.object is not None:
            names = self._object(owner.object)
            if owner.kind == "tls":
                return FileAddress(names, owner.offset, owner.kind, is_tls=True)
            return FileAddress(names, owner.original - self._table.objects[owner.object].load_bias, owner.kind)
        if owner.kind == "runtime" and owner.path.startswith("/"):
            return self._in_library(owner)
        return _NO_PLACE

    def _object(self, number: int) -> FileSymbols:
        if number not in self._objects:
            self._objects[number] = FileSymbols(self._target, identity_of(self._table.objects[number]), True)
        return self._objects[number]

    def _in_library(self, owner: Owner) -> Union[FileAddress, Absent]:
        """A library of the host: its headers in memory tell which file it is and how it was placed."""
        base = owner.address - owner.offset
        if base not in self._libraries:
            self._libraries[base] = self._library(owner.path, base)
        library = self._libraries[base]
        return (
            library if isinstance(library, Absent) else FileAddress(library[0], owner.address - library[1], owner.kind)
        )

    def _library(self, path: str, base: int) -> Union[tuple[FileSymbols, int], Absent]:
        try:
            loaded = LoadedElf(self._target.read, base)
        except ObjectFileError:
            return Absent(f"{path} is not a program or library")
        except MemoryUnreadable as error:
            return Absent(error.sentence)
        identity = identity_by_headers(path, loaded.build_id, loaded.program_headers)
        return FileSymbols(self._target, identity, False), loaded.load_bias


class FileSymbols:
    """The names in one file. `has_variables`: whether its data is worth reading debug information for."""

    def __init__(self, target: Target, identity: LoadedIdentity, has_variables: bool) -> None:
        self._target = target
        self._identity = identity
        self._has_variables = has_variables

    def symbol(self, place: FileAddress) -> Union[Symbol, Absent]:
        """The best name: of data what DWARF calls it, else what the symbol table says."""
        symbols = self._symbols
        if isinstance(symbols, Absent):
            return symbols
        file_symbol = (symbols.tls if place.is_tls else symbols.addresses).at(place.vaddr)
        if place.kind in ("data", "rodata", "tls", "original", "shared"):
            variable = self._variable(place)
            if variable is not None:
                return _of_variable(variable, place, file_symbol)
        if place.kind in ("code", "original", "shared", "runtime"):
            return self._of_code(place, file_symbol)
        return _of_symbol(file_symbol, place) if file_symbol is not None else _NAMELESS

    @cached_property
    def path(self) -> Union[str, Absent]:
        """Where the file can be opened."""
        return object_path(self._target, self._identity)

    @cached_property
    def _symbols(self) -> Union[Symbols, Absent]:
        if isinstance(self.path, Absent):
            return self.path
        file = elf_file_cache.state_of(self.path, self._identity.build_id)
        stored = elf_file_cache.load(file, KIND)
        try:
            return Symbols.decode(stored) if stored is not None else self._read_symbols(self.path, file)
        except ValueError:
            return self._read_symbols(self.path, file)

    def _read_symbols(self, path: str, file: Optional[elf_file_cache.FileState]) -> Union[Symbols, Absent]:
        try:
            with ElfFile(path) as elf:
                place = debug_path(elf) if elf.section(".symtab") is None else None
                if place is None:
                    symbols = read_symbols(elf)
                else:
                    with ElfFile(place) as debug:
                        symbols = read_symbols(elf, debug)
        except ObjectFileError as error:
            return Absent(error.sentence, error.hint)
        elf_file_cache.store(file, KIND, symbols.encode())
        return symbols

    # ---- debug information ----

    @cached_property
    def _debug(self) -> Optional[DebugInfo]:
        from pieglobalsfind.dwarf.debug_info import DebugInfo

        try:
            return DebugInfo.open(self.path) if isinstance(self.path, str) else None
        except ObjectFileError:
            return None  # without libdw, or with damaged debug information, there are names and no lines

    @cached_property
    def _variables(self) -> Optional[Variables]:
        from pieglobalsfind.dwarf import variable_cache

        if not self._has_variables or isinstance(self.path, Absent):
            return None
        try:
            return variable_cache.declared(self.path, self._identity.build_id)
        except ObjectFileError:
            return None

    def _variable(self, place: FileAddress) -> Optional[Variable]:
        """The innermost variable at a place."""
        declared = self._variables if not place.is_tls else None
        if declared is None:
            return None
        at = bisect_right(declared.starts, place.vaddr) - 1
        for number in range(at, max(at - OVERLAPPING, -1), -1):
            variable = declared.variables[number]
            if variable.address is not None and place.vaddr < variable.address + max(variable.size, 1):
                return variable
        return None

    def _of_code(self, place: FileAddress, file_symbol: Optional[FileSymbol]) -> Union[Symbol, Absent]:
        if file_symbol is None:
            return _NAMELESS
        line = self._debug.line(place.vaddr) if self._debug is not None else None
        symbol = _of_symbol(file_symbol, place)
        name = self._written(file_symbol.name, place.vaddr) or symbol.name
        file, number = (line.file, line.line) if line is not None else ("", 0)
        return Symbol(name, symbol.linkage_name, symbol.offset, symbol.size, file, number)

    def _written(self, name: str, vaddr: int) -> str:
        """gfortran appends an underscore to a procedure's name; DWARF has it as it was written."""
        if not name.endswith("_") or name.startswith("_Z") or self._debug is None:
            return ""
        written = self._debug.function(vaddr) or ""
        return written if written.lower() == name.rstrip("_") else ""


OVERLAPPING = 64  # variables that may begin before a place and cover it: units' views of a Fortran common block


def _of_symbol(file_symbol: FileSymbol, place: FileAddress) -> Symbol:
    return Symbol(demangle(file_symbol.name), file_symbol.name, place.vaddr - file_symbol.start, file_symbol.size)


def _of_variable(variable: Variable, place: FileAddress, file_symbol: Optional[FileSymbol]) -> Symbol:
    linkage = variable.linkage_name or (file_symbol.name if file_symbol is not None else variable.name)
    offset = place.vaddr - (variable.address or 0)
    return Symbol(variable.name, linkage, offset, variable.size, variable.file, variable.line)


def entry_of(table: RankTable, translator: Translator, symbolizer: Symbolizer) -> Region:
    """The code of the function with which every rank's stack begins, by its symbol if its size is not known.

    It is empty where neither is known.
    """
    start, size = table.entry_function, table.entry_function_size
    if start and not size:
        symbol = symbolizer.symbol(translator.owner(start))
        size = symbol.size - symbol.offset if isinstance(symbol, Symbol) else 0
    return Region(start, size)
