"""Answers "which source line, which function" for an address of one file.

Takes an opened `Module`; knows the address ranges of all units from the start, and a unit's functions from the first
question about it. It uses no .debug_aranges, which clang does not write, and never resolves inlined calls.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

from pieglobalsfind.cache.elf_file_cache import FileState, load, store
from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.constants import RECORDS
from pieglobalsfind.dwarf.libdw.bindings import Die
from pieglobalsfind.dwarf.libdw.die_reader import Reader, Unit
from pieglobalsfind.dwarf.libdw.die_walk import walk
from pieglobalsfind.dwarf.libdw.module import Module
from pieglobalsfind.dwarf.line_table import LineTable

MOST_RANGES = 3_000_000  # of all units and functions; in a damaged file each may name the same long list
KIND = "functions-1-"  # changes with the form of what is stored, and with what it says


class FunctionRange(NamedTuple):
    """A function's code in [low, high), the offset of its DIE, and the Fortran module or procedure that holds it."""

    low: int
    high: int
    die: int
    scope: str


def kept_functions(file: Optional[FileState], unit: int) -> Optional[list[FunctionRange]]:
    """The functions of a file's unit, by its number; None if they are not kept."""
    data = load(file, f"{KIND}{unit}")
    if data is None:
        return None
    try:
        function_ranges = [FunctionRange(*row) for row in json.loads(data)]
    except (ValueError, TypeError, RecursionError):
        return None
    is_sound = all(
        type(function_range.low) is type(function_range.high) is type(function_range.die) is int
        and isinstance(function_range.scope, str)
        for function_range in function_ranges
    )
    return function_ranges if is_sound else None


def keep_functions(file: Optional[FileState], unit: int, functions: Sequence[FunctionRange]) -> None:
    """Keep them for the next time; `file` is the state from before the file was read."""
    store(file, f"{KIND}{unit}", json.dumps(functions).encode())


class SourceLine(NamedTuple):
    """A place in the source: the file as DWARF names it, and its line."""

    file: str
    line: int


@dataclass(frozen=True)
class FunctionDie:
    """A function's DIE, and the name of the Fortran module or procedure that holds it ("" if none does)."""

    die: Die
    scope: str


class NumberedIntervals:
    """Half-open intervals with a number each; of overlapping ones the one that starts last wins."""

    def __init__(self, intervals: Iterable[tuple[int, int, int]]) -> None:
        self._intervals = sorted(interval for interval in intervals if interval[0] < interval[1])
        self._starts = [low for low, _, _ in self._intervals]

    def find(self, address: int) -> Optional[int]:
        """Return the number of the interval that has an address, or None."""
        for index in range(bisect_right(self._starts, address) - 1, -1, -1):
            low, high, number = self._intervals[index]
            if low <= address < high:
                return number
            if address - low > 1 << 24:  # nested intervals end near; do not search a large table to its beginning
                return None
        return None


class LineReader:
    """Lines and functions of one file; `file` is its state from before it was opened, None: nothing is kept of it."""

    def __init__(self, module: Module, demangle: Callable[[str], str], file: Optional[FileState] = None) -> None:
        self._module = module
        self._file = file
        self._demangle = demangle
        self._reader = Reader()
        self._units = list(module.units())
        self._ranges_read = 0
        self._unit_at = NumberedIntervals(self._unit_ranges())
        self._tables: dict[int, LineTable] = {}
        self._functions: dict[int, tuple[NumberedIntervals, list[FunctionRange]]] = {}

    def _unit_ranges(self) -> Iterator[tuple[int, int, int]]:
        for number, unit in enumerate(self._units):
            for low, high in self._ranges(unit.skeleton):
                if low > self._module.low:  # 0: the linker discarded the code
                    yield low, high, number

    def _ranges(self, die: Die) -> Iterator[tuple[int, int]]:
        for address_range in self._reader.ranges(die):
            self._ranges_read += 1
            if self._ranges_read > MOST_RANGES:
                return
            yield address_range

    def unit(self, address: int) -> Optional[Unit]:
        """The unit whose code lies at `address`, or None."""
        number = self._unit_at.find(address)
        return None if number is None else self._units[number]

    def line(self, address: int) -> Optional[SourceLine]:
        """The line whose code lies at `address`, or None."""
        number = self._unit_at.find(address)
        if number is None:
            return None
        if number not in self._tables:
            self._tables[number] = LineTable(self._units[number].skeleton)
        line = self._tables[number].find(address)
        return SourceLine(*line) if line is not None else None

    def function(self, address: int) -> Optional[str]:
        """The function (not the inlined one) whose code lies at `address`, named as its language does."""
        function_die = self.function_at(address)
        return None if function_die is None else self._name(function_die.die)

    def function_at(self, address: int) -> Optional[FunctionDie]:
        """The DIE of the function (not the inlined one) whose code lies at `address`, or None."""
        number = self._unit_at.find(address)
        if number is None:
            return None
        if number not in self._functions:
            functions = self._functions_of(number)
            intervals = NumberedIntervals(
                (function_range.low, function_range.high, index) for index, function_range in enumerate(functions)
            )
            self._functions[number] = intervals, functions
        intervals, functions = self._functions[number]
        index = intervals.find(address)
        if index is None:
            return None
        die = self._reader.die_at(self._units[number].die, functions[index].die)
        if die is None or self._reader.tag(die) != dw.DW_TAG_subprogram:
            return None
        return FunctionDie(die, functions[index].scope)

    def _functions_of(self, number: int) -> list[FunctionRange]:
        """A unit's functions; those of the file itself are kept for the next start."""
        unit = self._units[number]
        file = None if unit.is_skeleton else self._file
        kept = kept_functions(file, number)
        if kept is not None:
            return kept
        function_ranges = list(self._walked_functions(unit.die))
        keep_functions(file, number, function_ranges)
        return function_ranges

    def _walked_functions(self, unit: Die) -> Iterator[FunctionRange]:
        for die, tag, scope in walk(self._reader, unit, "", self._inside):
            if tag == dw.DW_TAG_subprogram:
                for low, high in self._ranges(die):
                    if low > self._module.low:
                        yield FunctionRange(low, high, self._reader.offset(die), scope)

    def _name(self, die: Die) -> str:
        linkage = self._reader.string(die, dw.DW_AT_linkage_name) or self._reader.string(
            die, dw.DW_AT_MIPS_linkage_name
        )
        readable = self._demangle(linkage) if linkage.startswith("_Z") else ""
        return readable or self._reader.string(die, dw.DW_AT_name) or linkage

    def _inside(self, die: Die, tag: int, scope: str) -> Optional[str]:
        """The scope of functions inside a DIE, None where no function can be."""
        if tag in (dw.DW_TAG_subprogram, dw.DW_TAG_module):
            return self._reader.own_string(die, dw.DW_AT_name)
        return scope if tag in (dw.DW_TAG_namespace, dw.DW_TAG_lexical_block) or tag in RECORDS else None
