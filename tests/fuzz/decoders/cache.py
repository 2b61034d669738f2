"""Cache entries: a damaged file in the cache counts as nothing; bytes that pass as an entry are decoded or refused."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from pathlib import Path
from unittest.mock import patch

from pieglobalsfind.cache import elf_file_cache
from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.types import GLOBAL, THREAD_LOCAL, Variable
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.symbol_table import Symbols, SymbolTable, read_symbols
from tests.fuzz.patches import damaged, written
from tests.fuzz.scratch import IN_MEMORY
from tests.support.fabricate.elf_file import Symbol, shared_object

FOLDER = tempfile.TemporaryDirectory(dir=IN_MEMORY)
OWN_CACHE = patch.dict(os.environ, XDG_CACHE_HOME=FOLDER.name)
PROGRAM = Path(FOLDER.name, "program")
PROGRAM.write_bytes(shared_object((Symbol("main", 0x1000, 16), Symbol("my_rank", 0x2000, 4, 0x11, 2))))
KIND = "fuzz"
CONTENT = bytes(range(200))
with ElfFile(str(PROGRAM)) as elf:
    SYMBOLS = read_symbols(elf).encode()


def entry() -> tuple[elf_file_cache.FileState, Path]:
    """The place of an entry in a cache of our own."""
    state = elf_file_cache.state_of(str(PROGRAM), b"\x11" * 20)
    assert state is not None
    with OWN_CACHE:
        elf_file_cache.store(state, KIND, CONTENT)
    (place,) = Path(FOLDER.name).rglob(f"*.{KIND}")
    return state, place


STATE, PLACE = entry()
ENTRY = PLACE.read_bytes()


def variables(count: int) -> bytes:
    """Variables as the cache has them: a thread-local one, and `count` less one in memory."""
    local = Variable("t", "", "a.c", 1, 0, 4, THREAD_LOCAL, "C", None, 8)
    rows = [Variable(f"v{at}", "", "a.c", at, 0, 4, GLOBAL, "C", at) for at in range(1, count)]
    return json.dumps([local, *rows]).encode()


def seeds() -> list[bytes]:
    """The first byte says what is damaged: an entry's file (f), variables (v), symbols (s)."""
    places = range(0, len(ENTRY), 7)
    return [
        b"f",
        *(b"f" + written([(place, b"\x55")]) for place in places),
        *(b"v" + variables(count) for count in (0, 1, 3)),
        b"s" + SYMBOLS,
    ]


def check(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    try:
        if kind == b"f":
            check_file(rest)
        elif kind == b"v":
            stored = variable_cache.decode(rest, str(PROGRAM), b"\x11" * 20)
            _ = [(variable.name, variable.address) for variable in stored.variables]
        else:
            check_symbols(rest)
    except (ValueError, struct.error):
        pass  # what a caller takes for a cache that has nothing


def check_file(rest: bytes) -> None:
    content, wrong = damaged(ENTRY, rest)
    PLACE.write_bytes(content)
    with OWN_CACHE:
        told = elf_file_cache.load(STATE, KIND)
    assert told == (None if wrong else CONTENT)


def check_symbols(data: bytes) -> None:
    symbols = Symbols.decode(data)
    for table in (symbols.addresses, symbols.tls):
        assert isinstance(table, SymbolTable)
        for symbol in table:
            table.at(symbol.start)
            table.named(symbol.name)
