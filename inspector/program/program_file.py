"""A program's or library's file as pyelftools reads it: its dynamic section, dynamic symbols and relocations.

Takes a path. Whatever pyelftools answers to a damaged file becomes `ObjectFileError`. Code that reads all symbols of a
program, or runs inside a debugger, uses `pieglobalsfind.elf` instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Optional

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE

from pieglobalsfind.elf.file import open_regular
from pieglobalsfind.errors import ObjectFileError, RanklensError
from pieglobalsfind.machine.lookup import processor_of
from pieglobalsfind.machine.processor import Processor

RELOCATION_TABLES = ("RELR", "REL", "RELA", "JMPREL")  # DT_ names, in the order in which the loader applies them


@dataclass(frozen=True)
class DynamicSymbol:
    """An entry of the dynamic symbol table (gABI, "Symbol Table"); `type` and `binding` as "STT_OBJECT", "STB_WEAK"."""

    name: str
    type: str
    binding: str
    is_defined: bool
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """A dynamic relocation: `offset` is a vaddr, `symbol` an index in the dynamic symbol table (0: none).

    `addend` is what RELA says, or what stands in the file at that place for REL and RELR.
    """

    offset: int
    type: int
    symbol: int
    addend: int


class ProgramFile:
    """One file, open until `close()`. Every method raises `ObjectFileError` where the file is damaged."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._named: dict[int, Optional[DynamicSymbol]] = {}  # by index
        self._stream = os.fdopen(open_regular(path), "rb")
        try:
            with self._refusing():
                self._elf = ELFFile(self._stream)
        except ObjectFileError:
            self.close()
            raise

    def __enter__(self) -> ProgramFile:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; what was read stays valid."""
        self._stream.close()

    @property
    def processor(self) -> Processor:
        """The table of the file's processor."""
        return processor_of(ENUM_E_MACHINE.get(self._elf["e_machine"], self._elf["e_machine"]))

    @cached_property
    def dynamic_section(self) -> range:
        """The vaddrs of the dynamic section (PT_DYNAMIC), none if there is none."""
        with self._refusing():
            dynamic = self._dynamic
            start, size = (0, 0) if dynamic is None else (dynamic["p_vaddr"], dynamic["p_memsz"])
            return range(start, start + size)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The libraries that it names (DT_NEEDED)."""
        with self._refusing():
            dynamic: Any = self._dynamic
            return () if dynamic is None else tuple(tag.needed for tag in dynamic.iter_tags("DT_NEEDED"))

    @cached_property
    def flags(self) -> int:
        """DT_FLAGS, 0 if there are none."""
        with self._refusing():
            dynamic = self._dynamic
            return 0 if dynamic is None else next((tag["d_val"] for tag in dynamic.iter_tags("DT_FLAGS")), 0)

    @cached_property
    def symbols(self) -> tuple[DynamicSymbol, ...]:
        """The dynamic symbol table, by index."""
        with self._refusing():
            return () if self._symbol_table is None else tuple(map(_symbol, self._symbol_table.iter_symbols()))

    @property
    def exported(self) -> frozenset[str]:
        """Names that the dynamic symbol table defines."""
        return frozenset(symbol.name for symbol in self.symbols if symbol.is_defined)

    @property
    def imported(self) -> frozenset[str]:
        """Names that other files are to define."""
        return frozenset(symbol.name for symbol in self.symbols if not symbol.is_defined)

    def symbol(self, relocation: Relocation) -> Optional[DynamicSymbol]:
        """What a relocation names; None if it names none, or none that the table has."""
        if relocation.symbol not in self._named:
            with self._refusing():
                self._named[relocation.symbol] = self._read_symbol(relocation.symbol)
        return self._named[relocation.symbol]

    def _read_symbol(self, index: int) -> Optional[DynamicSymbol]:
        """Read one alone: libc has 3,000, and its relocations name thirty of them."""
        table = self._symbol_table
        is_there = table is not None and 0 < index < table.num_symbols()
        return _symbol(table.get_symbol(index)) if is_there else None

    def relocations(self) -> Iterator[Relocation]:
        """Every dynamic relocation: RELR, REL, RELA, then those of the PLT, each place once."""
        with self._refusing():
            tables: Any = {} if self._dynamic is None else self._dynamic.get_relocation_tables()
            for name in RELOCATION_TABLES:
                if name in tables and not (name == "JMPREL" and self._counts_plt_among_rela()):
                    yield from map(self._relocation, tables[name].iter_relocations())

    def _counts_plt_among_rela(self) -> bool:
        """Whether DT_JMPREL lies within DT_RELA: some linkers do that."""
        assert self._dynamic is not None
        values: dict[str, int] = {tag["d_tag"]: tag["d_val"] for tag in self._dynamic.iter_tags()}
        start = values.get("DT_RELA", 0)
        return values["DT_JMPREL"] in range(start, start + values.get("DT_RELASZ", 0))

    def _relocation(self, read: Any) -> Relocation:
        place = read["r_offset"]
        if "r_info" not in read.entry:  # RELR
            return Relocation(place, self.processor.relocations.relative, 0, self._word(place))
        addend = read["r_addend"] if read.is_RELA() else self._word(place)
        return Relocation(place, read["r_info_type"], read["r_info_sym"], addend)

    def _word(self, vaddr: int) -> int:
        self._stream.seek(self._offset(range(vaddr, vaddr + 8)))
        return int.from_bytes(self._stream.read(8), "little" if self._elf.little_endian else "big", signed=True)

    def _offset(self, vaddrs: range) -> int:
        for segment, offset in self._loaded:
            if segment.start <= vaddrs.start and vaddrs.stop <= segment.stop:
                return offset + vaddrs.start - segment.start
        raise ValueError(f"the file has no bytes of {vaddrs.start:#x}")

    @cached_property
    def _loaded(self) -> list[tuple[range, int]]:
        """The vaddrs that the file has bytes of, and where: pyelftools reads all program headers for each address."""
        segments = self._elf.iter_segments("PT_LOAD")
        return [(range(one["p_vaddr"], one["p_vaddr"] + one["p_filesz"]), one["p_offset"]) for one in segments]

    @cached_property
    def _symbol_table(self) -> Any:
        return self._elf.get_section_by_name(".dynsym") or self._dynamic

    @cached_property
    def _dynamic(self) -> Optional[DynamicSegment]:
        segments = (segment for segment in self._elf.iter_segments() if isinstance(segment, DynamicSegment))
        return next(segments, None)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """One sentence in place of any exception that damage causes in pyelftools, which raises many kinds."""
        try:
            yield
        except RanklensError:
            raise
        except Exception as error:
            raise ObjectFileError(f"{self.path} is damaged, its dynamic section is invalid") from error


def _symbol(read: Any) -> DynamicSymbol:
    info = read["st_info"]
    defined = read["st_shndx"] != "SHN_UNDEF"
    binding = "STB_GNU_UNIQUE" if info["bind"] == "STB_LOOS" else info["bind"]  # GNU's name for the same number
    return DynamicSymbol(read.name, info["type"], binding, defined, read["st_value"], read["st_size"])
