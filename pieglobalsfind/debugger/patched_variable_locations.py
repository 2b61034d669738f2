"""Write copies of ELF files whose debug information gives one rank's own addresses of variables outside its copies.

Takes an object's file and a rank; gives a copy of the file whose debug information names the rank's own addresses. A
debugger moves all addresses of a file by one distance, and asks the thread library for thread-local ones, which knows
kernel threads alone; so each such variable's location is written again, as the address that the distance makes right.

The location of a variable with static storage is an expression of one operation in .debug_info (DWARF 5, 2.5.1 and
2.6.1.1.2; compilers for x86-64 write thread-local ones as in "ELF Handling For Thread-Local Storage"), or an entry of
.debug_addr. GDB goes by symbols where a compilation unit only declares a variable, and where debug information gives
a thread-local one no place, as GCC's for AArch64: symbols get the addresses, too, and thread-local ones become ones of
variables with static storage. Nothing else is changed; the file itself never is.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.types import Variable
from pieglobalsfind.elf.file import (
    SHF_ALLOC,
    SHF_TLS,
    SHF_WRITE,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_SYMTAB,
    SYMBOL_SIZE,
    ElfFile,
    Section,
)
from pieglobalsfind.elf.symbol_table import SHN_UNDEF, STB_LOCAL, STT_OBJECT, STT_TLS
from pieglobalsfind.machine.processor import NOWHERE
from pieglobalsfind.model import Absent, Object, Rank, Region
from pieglobalsfind.ranks.variable_address import data_place, has_copy, lies_apart, thread_local_place

# exprloc of 9 bytes: DW_OP_addr; of 10: DW_OP_const8u, then DW_OP_form_tls_address or its GNU forerunner
ADDRESS = re.compile(rb"(?=\x09\x03(.{8}))", re.DOTALL)
THREAD_LOCAL = re.compile(rb"(?=\x0a\x0e(.{8})[\x9b\xe0])", re.DOTALL)
LONGEST = 11  # bytes that these look at
PIECE = 1 << 24  # bytes that are searched at once: sections may be of some hundred MB
NO_RANK = Absent("no rank is selected")
_WORD = struct.Struct("<Q")
_SYMBOL, _SYMBOL_START = struct.Struct("<IBBHQQ"), struct.Struct("<IBBH")
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Location:
    """A variable's address in a file's debug information or symbols. `position` is that of the 8 bytes in the file.

    `symbol`: the first 8 bytes that a symbol needs instead of its own where it is no longer a thread-local one.
    """

    position: int
    value: int
    thread_local: bool
    symbol: bytes = b""


def needs(rank: Rank, elf_object: Object, is_elsewhere: bool = False) -> bool:
    """Whether some of the object's variables lie apart on this rank; `is_elsewhere` as in `Instance`."""
    return is_elsewhere or lies_apart(rank, elf_object)


@dataclass(frozen=True)
class Instance:
    """An object as one rank has it, or the original (None).

    `is_elsewhere`: its pages are another process's, at the same addresses. `is_original`: the original, where the
    rank's code runs there: of the rank's own it uses thread-local variables alone.
    """

    rank: Optional[Rank]
    object: Object
    is_elsewhere: bool = False
    is_original: bool = False

    def place(self, location: Location) -> Union[int, Absent]:
        """Return where a rank keeps what a location describes; unreadable if the rank has none."""
        place = self._place(location)
        # Nothing of this process, or of its thread, may be taken for the rank's: no program has such an address.
        is_nowhere = location.thread_local and isinstance(place, Absent)
        return NOWHERE + location.value if is_nowhere or self._has_other_pages(place) else place

    def _place(self, location: Location) -> Union[int, Absent]:
        if self.rank is None:
            return NO_RANK if location.thread_local else location.value + self.object.load_bias
        if location.thread_local:
            return thread_local_place(self.rank, self.object, location.value)
        if self.is_original:
            return location.value + self.object.load_bias
        return data_place(self.rank, self.object, location.value + self.object.load_bias)

    def _has_other_pages(self, address: Union[int, Absent]) -> bool:
        """Processes share all memory, or else the ranks' ranges alone: then the object has no copies."""
        if self.rank is None:
            return False
        in_range = isinstance(self.rank.range, Region) and address in self.rank.range
        return self.is_elsewhere and not has_copy(self.rank, self.object) and not in_range


def make_folder() -> Path:
    """A new folder that only this user can write to."""
    return Path(tempfile.mkdtemp(prefix="ranklens-"))


class PatchedFiles:
    """The files made for one debugger; they are removed with this object, at the latest when the debugger ends.

    `make_folder` makes the private folder that they are put into; of a debugger that runs no code of ours at its end,
    it has to see to what is left. `with_symbols`: the debugger takes places of variables from symbols, too.
    """

    def __init__(self, make_folder: Callable[[], Path] = make_folder, with_symbols: bool = False) -> None:
        self._make_folder = make_folder
        self._with_symbols = with_symbols
        self._folder: Optional[Path] = None
        self._made = 0
        self._locations: dict[str, tuple[Location, ...]] = {}

    def view(self, path: str, variables: Iterable[Variable], instance: Instance, bias: int) -> str:
        """The file for a rank's instance; `bias` is what the debugger will add to every address. Raises OSError."""
        if path not in self._locations:
            variables = tuple(variables)
            symbols = symbol_locations(path, variables) if self._with_symbols else ()
            self._locations[path] = (*locations(path, variables), *symbols)
        changes = [(location, instance.place(location)) for location in self._locations[path]]
        made = self._new_file(path)
        shutil.copyfile(path, made)
        with made.open("r+b") as file:
            for location, place in changes:
                if os.pread(file.fileno(), _WORD.size, location.position) != _WORD.pack(location.value):
                    raise OSError(errno.ESTALE, "has been built again", path)
                if isinstance(place, int):
                    write(file.fileno(), location, (place - bias) & _MASK)
        return str(made)

    def drop(self, path: str) -> None:
        """The debugger has let go of this file, if it is one of these."""
        if self._folder is not None and self._folder in Path(path).parents:
            shutil.rmtree(Path(path).parent, ignore_errors=True)

    def _new_file(self, path: str) -> Path:
        """In a folder of its own: a debugger takes a path that it knows for the file that it knows."""
        if self._folder is None:
            self._folder = self._make_folder()
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir(mode=0o700)
        return folder / Path(path).name


def write(descriptor: int, location: Location, address: int) -> None:
    """Write an address into a location expression, or into a symbol."""
    os.pwrite(descriptor, _WORD.pack(address), location.position)
    if location.symbol:
        os.pwrite(descriptor, location.symbol, location.position - len(location.symbol))
    elif location.thread_local:
        os.pwrite(descriptor, bytes((dw.DW_OP_addr,)), location.position - 1)
        os.pwrite(descriptor, bytes((dw.DW_OP_nop,)), location.position + _WORD.size)


def locations(path: str, variables: Collection[Variable]) -> Iterator[Location]:
    """Where the addresses of variables stand in the file's debug information."""
    addresses = frozenset(variable.address for variable in variables if variable.address is not None)
    offsets = frozenset(variable.tls_offset for variable in variables if variable.tls_offset is not None)
    with ElfFile(path) as elf:
        for section in elf.sections:
            if section.name == ".debug_info":
                for start, data in pieces(elf, section):
                    yield from _found_by(ADDRESS, start, data, addresses, False)
                    yield from _found_by(THREAD_LOCAL, start, data, offsets, True)
            elif section.name == ".debug_addr":
                for start, data in pieces(elf, section):
                    yield from entries(start, data[:PIECE], addresses)


def pieces(elf: ElfFile, section: Section) -> Iterator[tuple[int, bytes]]:
    """What the file holds of a section, in order: offsets in the file, and so many bytes and some of the next piece."""
    end = section.offset + (0 if section.type == SHT_NOBITS else section.size)
    for start in range(section.offset, end, PIECE):
        yield start, elf.read(start, min(PIECE + LONGEST, end - start))


def _found_by(
    pattern: re.Pattern[bytes], start: int, data: bytes, wanted: frozenset[int], thread_local: bool
) -> Iterator[Location]:
    for match in pattern.finditer(data):
        if match.start() >= PIECE:
            return  # the next piece has it, too
        (value,) = _WORD.unpack(match.group(1))
        if value in wanted:
            yield Location(start + match.start(1), value, thread_local)


def entries(start: int, data: bytes, wanted: frozenset[int]) -> Iterator[Location]:
    """Of .debug_addr: tables of addresses, each after a header of 8 bytes (DWARF 5, 7.27)."""
    for number, (value,) in enumerate(_WORD.iter_unpack(data[: len(data) & -_WORD.size])):
        if value in wanted:
            yield Location(start + number * _WORD.size, value, False)


def symbol_locations(path: str, variables: Collection[Variable]) -> Iterator[Location]:
    """Where the addresses of variables, and those of all thread-local ones, stand in the file's symbol tables.

    Thread-local ones become symbols of a section that is moved as the file is, wherever that lies. A file's own
    (STB_LOCAL) become undefined where there is debug information: GDB, which asks it alone for their type, would take
    the symbol of a variable that it does not place for a function.
    """
    addresses = frozenset(variable.address for variable in variables if variable.address is not None)
    with ElfFile(path) as elf:
        has_debug = any(section.name == ".debug_info" for section in elf.sections)
        moved = next((number for number, section in enumerate(elf.sections) if _is_static(section)), None)
        tables = [section for section in elf.sections if section.type in (SHT_SYMTAB, SHT_DYNSYM)]
        for table in tables if moved is not None else ():
            data = elf.section_bytes(table)
            for start in range(0, len(data) - SYMBOL_SIZE + 1, SYMBOL_SIZE):
                kind = data[start + 4] & 15
                if kind not in (STT_OBJECT, STT_TLS):
                    continue
                name, info, other, section, value, _ = _SYMBOL.unpack_from(data, start)
                position = table.offset + start + _SYMBOL_START.size
                if kind == STT_OBJECT and section != SHN_UNDEF and value in addresses:
                    yield Location(position, value, False)
                elif kind == STT_TLS and section != SHN_UNDEF:
                    place = SHN_UNDEF if has_debug and info >> 4 == STB_LOCAL else moved
                    symbol = _SYMBOL_START.pack(name, info & ~15 | STT_OBJECT, other, place)
                    yield Location(position, value, True, symbol)


def _is_static(section: Section) -> bool:
    """Whether variables with static storage are in it."""
    return section.flags & (SHF_ALLOC | SHF_WRITE | SHF_TLS) == SHF_ALLOC | SHF_WRITE
