"""Looks an address up in a unit's line table, by the rules that GDB follows.

Takes the unit's DIE; libdw decodes and sorts the rows (.debug_line), this searches them where they are.
"""

from __future__ import annotations

from ctypes import byref, c_bool, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Optional

from pieglobalsfind.dwarf.libdw.bindings import Die, library, text


class LineTable:
    """The rows of one unit's line number program, in ascending order of address."""

    def __init__(self, unit: Die) -> None:
        self.lib = library()
        self._lines, count = c_void_p(), c_size_t()
        failed = self.lib.dwarf_getsrclines(byref(unit), byref(self._lines), byref(count)) != 0
        self._count = 0 if failed else count.value

    def find(self, address: int) -> Optional[tuple[str, int]]:
        """(file, line) of the code at `address`, by GDB's rules.

        The last row that starts at or before it counts; rows of line 0 are passed over, and of several at one address
        the last that begins a statement is taken.
        """
        index = self._last_at_or_before(address)
        while index >= 0 and not self._ends_sequence(index) and self._line(index) == 0:
            index -= 1
        if index < 0 or self._ends_sequence(index):
            return None
        statement = index
        while statement >= 0 and not self._begins_statement(statement):
            statement -= 1
            if statement < 0 or self._address(statement) != self._address(index) or self._line(statement) == 0:
                statement = -1
        row = self._row(statement if statement >= 0 else index)
        return text(self.lib.dwarf_linesrc(row, None, None)), self._line(statement if statement >= 0 else index)

    def _last_at_or_before(self, address: int) -> int:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._address(middle) <= address:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _row(self, index: int) -> Any:
        return self.lib.dwarf_onesrcline(self._lines, index)

    def _address(self, index: int) -> int:
        value = c_uint64()
        self.lib.dwarf_lineaddr(self._row(index), byref(value))
        return value.value

    def _line(self, index: int) -> int:
        value = c_int()
        self.lib.dwarf_lineno(self._row(index), byref(value))
        return value.value

    def _begins_statement(self, index: int) -> bool:
        value = c_bool()
        self.lib.dwarf_linebeginstatement(self._row(index), byref(value))
        return value.value

    def _ends_sequence(self, index: int) -> bool:
        value = c_bool()
        self.lib.dwarf_lineendsequence(self._row(index), byref(value))
        return value.value
