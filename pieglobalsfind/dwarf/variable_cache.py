"""Variables of a file, kept so that the second question needs no walk through its DWARF.

Takes a path and a build-id; keeps what every variable is, and where its type's DIE stands. A type is read when a caller
asks for it. An entry that is not of this form is ignored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, Optional, Union

from pieglobalsfind.cache.elf_file_cache import load, state_of, store
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.libdw.module import Module
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
from pieglobalsfind.dwarf.variables import VariableReader
from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Absent

KIND = "variables-7"  # changes with the form of what is stored, and with what it says
STORAGES = (GLOBAL, FILE_STATIC, FUNCTION_STATIC, THREAD_LOCAL, COMMON, MODULE)
LARGEST = (1 << 64) - 1  # of a number in DWARF


def declared(path: str, build_id: bytes) -> Variables:
    """What the ELF file `path` declares, which is kept unless its build-id is b"".

    Raises `ObjectFileError` if it can't be opened, or has another build-id.
    """
    file = state_of(path, build_id)
    stored = load(file, KIND)
    if stored is not None:
        try:
            return decode(stored, path, build_id)
        except ValueError:
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


class StoredTypes:
    """Types that variables name by where their DIEs are; the file is opened when the first is asked for."""

    def __init__(self, path: str, build_id: bytes, used: frozenset[int]) -> None:
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
    """All variables, and where their types are; None if a type is in another file."""
    if not reader.has_all(variable.type for variable in variables):
        return None
    return json.dumps(variables.variables).encode()


def decode(stored: bytes, path: str, build_id: bytes) -> Variables:
    """The reverse of `encode`; raises `ValueError` on anything else."""
    try:
        variables = [Variable(*row) for row in json.loads(stored)]
    except (TypeError, RecursionError):
        raise ValueError("not of this form") from None
    starts = [variable.address or 0 for variable in variables]
    if not all(map(_is_sound, variables)) or starts != sorted(starts):
        raise ValueError("not of this form")
    types = StoredTypes(path, build_id, frozenset(variable.type for variable in variables))
    return Variables(variables, TypeTable(types), starts)


def _is_sound(variable: Variable) -> bool:
    """Whether each field has its type, and the variable one place."""
    place = variable.address if variable.tls_offset is None else variable.tls_offset
    numbers: tuple[Any, ...] = (variable.line, variable.type, variable.size, place)
    texts = (variable.name, variable.linkage_name, variable.file, variable.language, variable.function, variable.block)
    return (
        all(type(number) is int and 0 <= number <= LARGEST for number in numbers)
        and all(isinstance(text, str) for text in texts)
        and variable.storage in STORAGES
        and None in (variable.address, variable.tls_offset)
    )
