"""Variables of a program without debug information: what its symbols tell of them, names, places and sizes.

Takes the program's file; gives variables whose type nobody knows, so that their values are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from pieglobalsfind.demangle import demangle
from pieglobalsfind.dwarf_types import THREAD_LOCAL, VOID, TypeTable, Variable, Variables, Void
from pieglobalsfind.elf import PF_W, PT_LOAD, ElfFile
from pieglobalsfind.symbols import FileSymbol, read_symbols

UNTYPED = Void(name="?", reason="there is no debug information")


def by_symbols(path: str) -> Variables:
    """The symbols of writable memory that say their size; raises `ObjectFileError` if they can't be read."""
    with ElfFile(path) as elf:
        symbols = read_symbols(elf)
        writable = [one for one in elf.program_headers if one.type == PT_LOAD and one.flags & PF_W]
    local = [variable(one, is_local=True) for one in sized(symbols.tls)]
    fixed = [
        variable(one, is_local=False)
        for one in sized(symbols.addresses)
        if any(segment.vaddr <= one.start < segment.vaddr + segment.memory_size for segment in writable)
    ]
    found = [*sorted(local, key=attrgetter("tls_offset")), *sorted(fixed, key=attrgetter("address"))]
    return Variables(found, TypeTable({VOID: UNTYPED}), [one.address or 0 for one in found])


def sized(symbols: Iterable[FileSymbol]) -> Iterator[FileSymbol]:
    return (one for one in symbols if one.size)


def variable(symbol: FileSymbol, is_local: bool) -> Variable:
    return Variable(
        name=demangle(symbol.name),
        linkage_name=symbol.name,
        file="",
        line=0,
        type=VOID,
        size=symbol.size,
        storage=THREAD_LOCAL if is_local else "",
        language="",
        address=None if is_local else symbol.start,
        tls_offset=symbol.start if is_local else None,
    )
