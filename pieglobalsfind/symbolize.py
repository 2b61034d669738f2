"""Names for addresses: the symbol of the object's file, and the line of its debug information.

Takes a target, its rank table and an `Owner`; gives a `Symbol`, or why there is none. Names are looked up in the original
only: whose copy an address is in was decided before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.demangle import demangle
from pieglobalsfind.elf import open_elf
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Owner, RankTable, Symbol
from pieglobalsfind.symbols import SymbolTable
from pieglobalsfind.target import Target

_NAMELESS = Absent("no symbol covers it")


@dataclass(frozen=True)
class Place:
    """A vaddr in a file: where an address's name is to be looked up."""

    path: str
    build_id: bytes
    vaddr: int


class Symbolizer:
    """Names for one target; files are opened when first asked for, and kept."""

    def __init__(self, target: Target, table: RankTable) -> None:
        self._target = target
        self._table = table
        self._tables: dict[str, Union[SymbolTable, Absent]] = {}
        self._lines: dict[str, object] = {}
        self._named: dict[tuple[str, int], Union[Symbol, Absent]] = {}
        self._maps = None

    def symbol(self, owner: Owner) -> Union[Symbol, Absent]:
        """The symbol, and the source line of code, at an owner's address."""
        place = self._place(owner)
        if isinstance(place, Absent):
            return place
        key = (place.path, place.vaddr)
        if key not in self._named:
            self._named[key] = self._look_up(place, owner)
        return self._named[key]

    def _place(self, owner: Owner) -> Union[Place, Absent]:
        if owner.object is not None and owner.kind not in ("tls",):
            found = self._table.objects[owner.object]
            return Place(found.path, found.build_id, owner.original - found.load_bias)
        if owner.kind == "runtime":
            return self._runtime_place(owner.address)
        return Absent(f"{owner.kind} has no symbols")

    def _runtime_place(self, address: int) -> Union[Place, Absent]:
        """A library of the host: its mappings tell where in the file an address lies."""
        for one in self._target.maps():
            if one.start <= address < one.end and one.path.startswith("/"):
                path = self._target.open_path(one.path)
                if path is None:
                    return Absent(f"the file {one.path} is gone", "put it back")
                return self._vaddr_of(one.path, path, address - one.start + one.offset)
        return Absent("it is in no file")

    def _vaddr_of(self, name: str, path: str, offset: int) -> Union[Place, Absent]:
        try:
            with open_elf(path) as elf:
                for segment in elf.segments:
                    if segment.offset & -4096 <= offset < segment.offset + segment.file_size:
                        return Place(name, elf.build_id, offset - segment.offset + segment.vaddr)
        except RanklensError as error:
            return Absent(error.sentence, error.hint)
        return Absent("no segment of its file holds it")

    def _look_up(self, place: Place, owner: Owner) -> Union[Symbol, Absent]:
        table = self._table_of(place)
        if isinstance(table, Absent):
            return table
        found = table.at(place.vaddr)
        if found is None:
            return _NAMELESS
        file, line = self._line(place, owner)
        return Symbol(demangle(found.name), found.name, place.vaddr - found.start, found.size, file, line)

    def _table_of(self, place: Place) -> Union[SymbolTable, Absent]:
        if place.path not in self._tables:
            self._tables[place.path] = self._read_table(place)
        return self._tables[place.path]

    def _read_table(self, place: Place) -> Union[SymbolTable, Absent]:
        path = self._target.open_path(place.path)
        if path is None:
            return Absent(f"the file {place.path} is gone", "put it back")
        try:
            with open_elf(path) as elf:
                if place.build_id and elf.build_id != place.build_id:
                    return Absent(
                        f"{place.path} is another file now: build-id {elf.build_id.hex() or 'none'}, "
                        f"and the target runs {place.build_id.hex()}",
                        "put the file back that the target runs",
                    )
                return SymbolTable(elf)
        except RanklensError as error:
            return Absent(error.sentence, error.hint)

    def _line(self, place: Place, owner: Owner) -> tuple[str, int]:
        """Only code has lines."""
        if owner.kind in ("data", "rodata"):
            return "", 0
        from pieglobalsfind.dwarf import DebugInfo  # libdw is opened only when a line is asked for

        if place.path not in self._lines:
            self._lines[place.path] = self._open_lines(place, DebugInfo)
        information = self._lines[place.path]
        line = information.line(place.vaddr) if isinstance(information, DebugInfo) else None
        return (line.file, line.line) if line is not None else ("", 0)

    def _open_lines(self, place: Place, kind: type) -> Optional[object]:
        path = self._target.open_path(place.path)
        try:
            return kind.open(path) if path is not None else None  # type: ignore[attr-defined, no-any-return]
        except RanklensError:
            return None
