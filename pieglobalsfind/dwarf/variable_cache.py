"""Variables of a file, kept so that the second question needs no walk through its DWARF.

Takes a path and a build-id; keeps what every variable is, and where its type's DIE stands, as columns of numbers: they
are read as fast as the file, and a variable or type is made when it is asked for. Whatever is found in a cache that is
not what was written there is ignored.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, count
from operator import add
from typing import Any, Optional, Union, overload

from pieglobalsfind.cache.build_id_cache import load, state_of, store
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.libdw import Module
from pieglobalsfind.dwarf.types import (
    COMMON,
    FILE_STATIC,
    FUNCTION_STATIC,
    GLOBAL,
    MODULE,
    THREAD_LOCAL,
    VOID,
    Type,
    Types,
    TypeTable,
    Variable,
    Variables,
    Void,
)
from pieglobalsfind.dwarf.variables import LANGUAGES, VariableReader
from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Absent

KIND = f"variables-5-{sys.byteorder}"  # changes with the form of what is stored, and with what it says
STORAGES = (GLOBAL, FILE_STATIC, FUNCTION_STATIC, THREAD_LOCAL, COMMON, MODULE)
SPOKEN = ("other", *sorted(set(LANGUAGES.values())))  # languages
STORAGE_NUMBERS = {one: number for number, one in enumerate(STORAGES)}
LANGUAGE_NUMBERS = {one: number for number, one in enumerate(SPOKEN)}
HEAD = struct.Struct("=QQ")  # variables, bytes of text
# name, linkage name, file, line, type, size, storage, language, place, whether that is thread-local, function, block
COLUMNS = "IIIIQQBBQBII"
Columns = tuple[tuple[Any, ...], ...]
TEXTS = (0, 1, 2, 10, 11)
LINE, TYPE, SIZE, STORAGE, LANGUAGE, PLACE, IS_THREAD_LOCAL = 3, 4, 5, 6, 7, 8, 9


def declared(path: str, build_id: bytes) -> Variables:
    """What the ELF file `path` declares, which is kept unless its build-id is b"".

    Raises `ObjectFileError` if it can't be opened, or has another build-id.
    """
    file = state_of(path, build_id)
    stored = load(file, KIND)
    if stored is not None:
        try:
            return decode(stored, path, build_id)
        except (ValueError, struct.error):
            pass  # a damaged cache is not a cache
    information = DebugInfo.open(path, build_id)
    variables = information.declared
    is_whole = information.is_there and not information.missing
    encoded = encode(variables, information.reader) if file is not None and is_whole else None
    if encoded is not None:
        store(file, KIND, encoded)
    return variables


def declared_or_why(path: str, build_id: bytes) -> Union[Variables, Absent]:
    """What the ELF file `path` declares, which may be nothing, or why that is unknown."""
    try:
        variables = declared(path, build_id)
        if variables.variables:
            return variables
        information = DebugInfo.open(path, build_id)
        if information.missing:
            reason = f"debug information of {path} is in {information.missing[0]}, which can't be read"
            return Absent(reason, "put it back where it was when the program was built")
        if information.is_there:
            return variables
    except ObjectFileError as error:
        return Absent(error.sentence, error.hint)
    return Absent(f"{path} has no debug information", "compile with -g")


class StoredVariables(Sequence[Variable]):
    """Variables out of columns, made when they are asked for."""

    def __init__(self, columns: Sequence[array[int]], text: bytes) -> None:
        self._columns = columns
        self._text = text
        self._strings: dict[int, str] = {}
        self._all: Optional[list[Variable]] = None

    def __len__(self) -> int:
        return len(self._columns[PLACE])

    @overload
    def __getitem__(self, index: int) -> Variable: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Variable]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Variable, Sequence[Variable]]:
        if isinstance(index, slice):
            return [self[one] for one in range(len(self))[index]]
        one = [column[index] for column in self._columns]
        name, linkage, file, function, block = (self._string(one[column]) for column in TEXTS)
        address, offset = (None, one[PLACE]) if one[IS_THREAD_LOCAL] else (one[PLACE], None)
        storage, language = STORAGES[one[STORAGE]], SPOKEN[one[LANGUAGE]]
        kind, size = one[TYPE], one[SIZE]
        return Variable(name, linkage, file, one[LINE], kind, size, storage, language, address, offset, function, block)

    def __iter__(self) -> Iterator[Variable]:
        if self._all is None:
            self._all = [self[index] for index in range(len(self))]
        return iter(self._all)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredVariables, (self._columns, self._text)  # without those that were made

    def _string(self, start: int) -> str:
        if start not in self._strings:
            # which is whole, or empty: the text ends with a NUL
            self._strings[start] = self._text[start : self._text.find(b"\0", start)].decode("utf-8", "replace")
        return self._strings[start]


class StoredTypes:
    """Types that variables name by where their DIEs are; the file is opened when the first is asked for."""

    def __init__(self, path: str, build_id: bytes, used: Sequence[int]) -> None:
        self._path = path
        self._build_id = build_id
        self._used = used
        self._opened: Optional[Types] = None

    def __getitem__(self, index: int) -> Type:
        if self._opened is None:
            self._opened = self._open()
        return self._opened[index]

    def _open(self) -> Types:
        """The file's own reader, if it is the same file and has such types; else the reason."""
        try:
            reader = VariableReader(Module(self._path, self._build_id), demangle)
        except ObjectFileError as error:
            return unknown(error.sentence)
        if not reader.has_all(self._used):
            return unknown(f"{self._path} is not the file whose variables were kept")
        return reader.types


def unknown(reason: str) -> Types:
    """Types of which nothing is known, and why."""
    return defaultdict(lambda: Void("?", reason=reason), {VOID: Void()})


# ---- as bytes ----


def encode(variables: Variables, reader: VariableReader) -> Optional[bytes]:
    """All variables, and where their types are; None if something has no room, or a type is in another file."""
    columns: Columns = tuple(zip(*variables.variables)) if variables.variables else ((),) * len(COLUMNS)
    if not reader.has_all(columns[TYPE]):
        return None
    words = list(dict.fromkeys(chain([""], *(columns[column] for column in TEXTS if any(columns[column])))))
    text = "\0".join([*words, ""]).encode("utf-8", "replace")
    sizes = map(len, words) if text.isascii() else (len(word.encode("utf-8", "replace")) for word in words)
    starts = dict(zip(words, map(add, accumulate(sizes, initial=0), count())))  # a NUL behind each
    try:
        numbers = [array(code, list(column)) for code, column in zip(COLUMNS, in_numbers(columns, starts))]
    except OverflowError:
        return None
    head = HEAD.pack(len(variables.variables), len(text))
    return b"".join([head, *(number.tobytes() for number in numbers), text])


def in_numbers(columns: Columns, starts: dict[str, int]) -> Iterator[Sequence[int]]:
    """The fields of all rows as numbers, in the order of `COLUMNS`."""
    names, linkages, files, lines, kinds, sizes, storages, languages, addresses, offsets, functions, blocks = columns
    is_local = [address is None for address in addresses]
    yield from (_starts_of(one, starts) for one in (names, linkages, files))
    yield from (lines, kinds, sizes)
    yield list(map(STORAGE_NUMBERS.__getitem__, storages))
    yield list(map(LANGUAGE_NUMBERS.__getitem__, languages))
    yield [offset if local else address for address, offset, local in zip(addresses, offsets, is_local)]
    yield is_local
    yield from (_starts_of(one, starts) for one in (functions, blocks))


def _starts_of(texts: tuple[str, ...], starts: dict[str, int]) -> Sequence[int]:
    return list(map(starts.__getitem__, texts)) if any(texts) else bytes(len(texts))  # "" is the first of all


def decode(stored: bytes, path: str, build_id: bytes) -> Variables:
    """The reverse of `encode`; raises `ValueError` or `struct.error` on anything else."""
    count, text_size = HEAD.unpack_from(stored)
    columns, at = [], HEAD.size
    for code in COLUMNS:
        column = array(code)
        column.frombytes(stored[at : at + count * column.itemsize])
        if len(column) != count:
            raise ValueError("cut short")
        columns.append(column)
        at += count * column.itemsize
    text = stored[at:]
    check(columns, text, text_size)
    local = columns[IS_THREAD_LOCAL].tobytes().count(1)
    starts = array("Q", bytes(8 * local)) + columns[PLACE][local:]
    types = StoredTypes(path, build_id, columns[TYPE])
    return Variables(StoredVariables(columns, text), TypeTable(types), starts)


def check(columns: Sequence[array[int]], text: bytes, text_size: int) -> None:
    """Numbers must mean something, or the cache is not ours."""
    if len(text) != text_size or not text.endswith(b"\0"):
        raise ValueError("cut short")
    known = {STORAGE: len(STORAGES), LANGUAGE: len(SPOKEN), IS_THREAD_LOCAL: 2}
    if any(columns[column].tobytes().translate(None, bytes(range(limit))) for column, limit in known.items()):
        raise ValueError("not ours")
    local = columns[IS_THREAD_LOCAL].tobytes()
    if local != b"\1" * local.count(1) + b"\0" * local.count(0):
        raise ValueError("not in order")
