"""What is known of places of code: the file that each is from, its unwind rules, and the calls there by name.

Takes a target's rank table, translator and symbolizer. A place in a file is read once, whichever rank's copy asks.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Optional, Union

from pieglobalsfind.dwarf.cfi import CodeFile, Rules, code_file
from pieglobalsfind.elf.file import memory_file
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import Absent, Owner, RankTable
from pieglobalsfind.ranks.symbolize import Symbolizer
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.frame import SIGNAL_HANDLER
from pieglobalsfind.target import Target, read_or_none

if TYPE_CHECKING:
    from pieglobalsfind.dwarf.argument_locations import ArgumentReader

Place = Union[tuple[str, int], Absent]
"""The file that code is from, and its p_vaddr there."""
VDSO = "[vdso]"
LARGEST = 1 << 20  # bytes; it has a few pages


class CodePlaces:
    """Places of code, by their addresses in one target."""

    def __init__(self, target: Target, table: RankTable, translator: Translator, symbolizer: Symbolizer) -> None:
        self._target = target
        self._table = table
        self._translator = translator
        self._symbolizer = symbolizer
        self._files: dict[str, Optional[CodeFile]] = {}
        self._arguments: dict[str, Optional[ArgumentReader]] = {}
        self._named: dict[tuple[str, int], tuple[Call, ...]] = {}
        self._places: dict[int, Place] = {}
        self.signal_returns: set[int] = set()
        """Addresses at which a signal's handler returns, as walks have met them."""

    def at_moment(self, target: Target, table: RankTable) -> CodePlaces:
        """The same for a later moment of a process whose code lies where it did; all that is known is kept."""
        later = copy(self)
        later._target, later._table = target, table
        return later

    def place(self, pc: int) -> Place:
        """Where in a file the code at an address is."""
        place = self._places.get(pc)
        if place is None:
            in_file = self._symbolizer.place_in_file(self._translator.owner(pc))
            place = (vdso_place(self._target, pc) or in_file) if isinstance(in_file, Absent) else in_file
            self._places[pc] = place
        return place

    def file(self, path: str) -> Optional[CodeFile]:
        """A file's tables, None if it can't be opened."""
        if path not in self._files:
            try:
                self._files[path] = code_file(path)
            except ObjectFileError:
                self._files[path] = None
        return self._files[path]

    def rules(self, pc: int) -> Optional[Rules]:
        """How the caller's registers are found, None if that is unknown."""
        place = self.place(pc)
        if isinstance(place, Absent):
            return None
        file = self.file(place[0])
        return file.rules(place[1]) if file is not None else None

    def arguments(self, path: str) -> Optional[ArgumentReader]:
        """Where a file's functions have their arguments, None if it can't be opened."""
        if path not in self._arguments:
            from pieglobalsfind.dwarf.argument_locations import ArgumentReader  # late: stacks alone need no arguments

            file = self.file(path)
            self._arguments[path] = ArgumentReader(file) if file is not None else None
        return self._arguments[path]

    def calls(self, pc: int) -> tuple[Call, ...]:
        """The calls at an address of code, inlined ones first; one without a name where nothing is known."""
        if pc in self.signal_returns:
            return (Call(SIGNAL_HANDLER),)
        place = self.place(pc)
        if isinstance(place, Absent):
            return (Call("??"),)
        if place not in self._named:
            self._named[place] = self._name(pc, *place)
        return self._named[place]

    def _name(self, pc: int, path: str, vaddr: int) -> tuple[Call, ...]:
        owner = self._translator.owner(pc)
        library = library_of(self._table, owner) or path  # where it can be opened may be another name
        file = self.file(path)
        calls = file.calls(vaddr) if file is not None else ()
        if calls:
            return tuple(Call(call.function, call.file, call.line, library) for call in calls)
        symbol = self._symbolizer.symbol(owner)
        return (Call("??" if isinstance(symbol, Absent) else symbol.name, library=library),)

    def keep(self) -> None:
        """Have every file keep in the cache what was read of it."""
        for file in self._files.values():
            if file is not None:
                file.keep()


def library_of(table: RankTable, owner: Owner) -> str:
    """The program or library that an address is of, as the target names it; "" if it is of none."""
    name = owner.path if owner.object is None else table.objects[owner.object].path
    return name.removesuffix(" (deleted)")


def vdso_place(target: Target, pc: int) -> Optional[tuple[str, int]]:
    """None if the pc lies elsewhere, or what lies there can't be read."""
    mapping = mapping_at(target.maps(), pc)
    if mapping is None or mapping.path != VDSO or mapping.end - mapping.start > LARGEST:
        return None
    content = read_or_none(target, mapping.start, mapping.end - mapping.start)
    return (memory_file(content), pc - mapping.start) if content is not None else None
