"""Variables that debug information does not describe: names, places and sizes by the program's symbols.

Takes the program's file; gives variables of unknown type, so their values are bytes. They are all variables of a
program without debug information; in other programs they are those of files that were compiled without -g.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Optional

from pieglobalsfind.dwarf.types import THREAD_LOCAL, VOID, TypeTable, Variable, Variables, Void
from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.elf.file import PF_W, PT_GNU_RELRO, PT_LOAD, ElfFile
from pieglobalsfind.elf.symbol_table import FileSymbol, read_symbols
from pieglobalsfind.ranges import Range, merged

# What compilers and MPI libraries put into every program: a flag of crtstuff.c, references to personality routines,
# guards of function statics and virtual tables (Itanium C++ ABI, 5.1.4), MPI's constants and pointers to its functions
OTHERS = re.compile(
    r"completed\.\d+$|DW\.ref\.|_ZG[VR]|_ZT[VTISC]|[AP]{0,2}MPI[A-Z]?_|ampi[A-Z]|pup_|mpi(?:priv|fcmb)|mpi_\w+_$"
)
UNTYPED = Void(name="?", reason="there is no debug information")


def by_symbols(path: str) -> Variables:
    """The symbols of writable memory that say their size; raises `ObjectFileError` if they can't be read."""
    with ElfFile(path) as elf:
        symbols = read_symbols(elf)
        writable = [header for header in elf.program_headers if header.type == PT_LOAD and header.flags & PF_W]
    local = [variable(file_symbol, is_local=True) for file_symbol in sized(symbols.tls)]
    fixed = [
        variable(file_symbol, is_local=False)
        for file_symbol in sized(symbols.addresses)
        if any(segment.vaddr <= file_symbol.start < segment.vaddr + segment.memory_size for segment in writable)
    ]
    variables = [*sorted(local, key=attrgetter("tls_offset")), *sorted(fixed, key=attrgetter("address"))]
    return Variables(variables, TypeTable({VOID: UNTYPED}), [row.address or 0 for row in variables])


def undescribed(path: str, declared: Variables) -> Variables:
    """Those that `declared` lacks, without what only the loader writes; raises `ObjectFileError`."""
    every = by_symbols(path)
    with ElfFile(path) as elf:
        relro = [(header.vaddr, header.memory_size) for header in elf.program_headers if header.type == PT_GNU_RELRO]
    fixed = spans([*((row.address, row.size) for row in declared.variables), *relro])
    local = spans((row.tls_offset, row.size) for row in declared.variables)
    left = [
        row
        for row in every.variables
        if not overlaps(fixed if row.address is not None else local, row.address or row.tls_offset or 0, row.size)
    ]
    return Variables(left, every.types, [row.address or 0 for row in left])


def spans(extents: Iterable[tuple[Optional[int], int]]) -> tuple[Range, ...]:
    """[start, end) of those that have a place, ascending, those that touch or overlap as one."""
    return merged((start, start + size) for start, size in extents if start is not None)


def overlaps(extents: Sequence[Range], start: int, size: int) -> bool:
    """Whether any of some ascending spans has one of so many bytes."""
    end_index = bisect_left(extents, (start + size, 0))
    return any(end > start for _, end in extents[max(end_index - 1, 0) : end_index])


def sized(symbols: Iterable[FileSymbol]) -> Iterator[FileSymbol]:
    """Yield the symbols of variables."""
    return (symbol for symbol in symbols if symbol.size and not OTHERS.match(symbol.name))


def variable(symbol: FileSymbol, is_local: bool) -> Variable:
    """Return a variable that only its symbol describes."""
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
