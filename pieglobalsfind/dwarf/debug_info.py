"""The debug information of one ELF file: lines, functions and variables, read through elfutils' libdw.

Takes a path; separate debug files, split units and compressed sections are found as libdwfl finds them. It knows
nothing of processes or ranks: every address is a vaddr of the file.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Optional

from pieglobalsfind.dwarf.libdw.module import Module
from pieglobalsfind.dwarf.lines import LineReader, SourceLine
from pieglobalsfind.elf.demangle import demangle

if TYPE_CHECKING:  # types and variables are most of it, and lines need none
    from pieglobalsfind.dwarf.types import TypeTable, Variable, Variables
    from pieglobalsfind.dwarf.variables import VariableReader


class DebugInfo:
    """What DWARF says of one file. Each question reads only what it needs; answers are kept."""

    def __init__(self, module: Module) -> None:
        self._module = module

    @classmethod
    def open(cls, path: str, build_id: bytes = b"") -> DebugInfo:
        """Open the ELF file `path`; raises `ObjectFileError` if it is none, or if this machine lacks libdw.

        So it does if the file has another build-id than the one that is given.
        """
        return cls(Module(path, build_id))

    @property
    def is_there(self) -> bool:
        """Whether the file has debug information at all; without, every answer is empty."""
        return self._module.has_debug_information

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the files which it names for some of its parts, and which can't be read."""
        return self._module.missing

    @cached_property
    def _lines(self) -> LineReader:
        return LineReader(self._module, demangle)

    @cached_property
    def reader(self) -> VariableReader:
        """Who reads the variables, and knows where their types are."""
        from pieglobalsfind.dwarf.variables import VariableReader

        return VariableReader(self._module, demangle)

    @cached_property
    def declared(self) -> Variables:
        """Variables and their types together."""
        return self.reader.read()

    def root(self, type_name: str) -> Optional[Variables]:
        """The type of that name as a struct of globals; None if it is not defined here."""
        from pieglobalsfind.dwarf.globals_struct import root

        return root(self._module, type_name)

    def line(self, vaddr: int) -> Optional[SourceLine]:
        """The source line of the code at `vaddr`, or None."""
        return self._lines.line(vaddr)

    def function(self, vaddr: int) -> Optional[str]:
        """The function whose code lies at `vaddr` (not the inlined one), or None."""
        return self._lines.function(vaddr)

    def variables(self) -> tuple[Variable, ...]:
        """Every variable of static storage, in ascending order of place."""
        return tuple(self.declared.variables)

    @property
    def types(self) -> TypeTable:
        """The types that `variables()` name by index."""
        return self.declared.types

    def close(self) -> None:
        """No further question may be asked. Types that were handed out can still be read: they keep the file open."""
        self.__dict__.clear()
