"""A program's variables one by one: what, where declared, and which functions write to them.

Takes a program's file and the variables that may be written; gives rows. Refactoring by hand, thread_local tags and
source-to-source tools start from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Base, Enum, MemberPointer, Pointer, TypeTable, Variable
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.model import Absent

from ..terminal.text import harmless
from .tls_words import place_of
from .writers import Uses, read_uses

NO_PLACE = Absent("debug information does not say where it is")
COLUMNS = ("name", "type", "bytes", "file", "line", "storage", "language", "written by", "address taken by")


@dataclass(frozen=True)
class Listed:
    """One variable. `written_by`, `taken_by`: functions, as far as the code tells; or why that is not known."""

    name: str
    type: str
    size: int
    file: str
    line: int
    storage: str
    language: str
    written_by: Union[tuple[str, ...], Absent]
    taken_by: Union[tuple[str, ...], Absent]

    @property
    def cells(self) -> tuple[str, ...]:
        """One text for each of `COLUMNS`."""
        numbers = (str(self.size), self.file, str(self.line) if self.line else "")
        return (self.name, self.type, *numbers, self.storage, self.language, text(self.written_by), text(self.taken_by))

    @property
    def note(self) -> str:
        """As compilers write: editors jump to FILE:LINE."""
        who = f"written by {text(self.written_by)}" if self.written_by else "no store found"
        taken = f", address taken by {text(self.taken_by)}" if self.taken_by else ""
        place = f"{self.file}:{self.line}" if self.file else "no-line"
        return f"{place}: note: {self.type} {self.name}: {self.storage}, {self.size} bytes, {who}{taken}"


def listed(path: str, variables: Sequence[Variable], types: TypeTable) -> Iterator[Listed]:
    """In the order of files and lines; raises `ObjectFileError` if the file can't be read."""
    placed = {place: variable for variable in variables if (place := address_of(variable)) is not None}
    extents = [(place, variable.size) for place, variable in placed.items()]
    scalars = (Base, Pointer, MemberPointer, Enum)
    with_elements = (place for place, variable in placed.items() if not isinstance(types.strip(variable.type), scalars))
    with ElfFile(path) as elf:
        uses = read_uses(elf, extents, frozenset(with_elements))
    for variable in sorted(variables, key=lambda variable: (variable.file, variable.line, variable.name)):
        yield Listed(
            name=harmless(variable.name),
            type=harmless(type_name(types, variable.type, variable.language)),
            size=variable.size,
            file=harmless(variable.file),
            line=variable.line,
            storage=variable.storage,
            language=variable.language,
            written_by=functions(uses, variable, Uses.written_by),
            taken_by=functions(uses, variable, Uses.taken_by),
        )


def functions(
    uses: Union[Uses, Absent], variable: Variable, of: Callable[[Uses, int], tuple[str, ...]]
) -> Union[tuple[str, ...], Absent]:
    """Return the functions that use a variable, Absent where that is unknown."""
    if isinstance(uses, Absent):
        return uses
    place = address_of(variable)
    return NO_PLACE if place is None else tuple(harmless(name) for name in of(uses, place))


def address_of(variable: Variable) -> Optional[int]:
    """Return a variable's address in the file, or the place that stands for a thread-local one."""
    if variable.address is None and variable.tls_offset is not None:
        return place_of(variable.tls_offset)
    return variable.address


def text(names: Union[tuple[str, ...], Absent]) -> str:
    """Return names as text, "?" for unknown ones."""
    return "?" if isinstance(names, Absent) else ", ".join(names)
