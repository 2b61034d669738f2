"""List the variables and parameters of the functions at one pc, inlined ones too: their types and locations.

Takes an opened `CodeFile`; gives expressions about p_vaddr's of the file, so they serve all copies of it. It computes
nothing (stacks/frame_values.py does), and leaves out what is declared further down than the code has come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.argument_locations import ArgumentReader, Steps
from pieglobalsfind.dwarf.cfi import DEEPEST, MOST_RANGES, CallAt, CodeFile
from pieglobalsfind.dwarf.libdw.bindings import Die
from pieglobalsfind.dwarf.types import TypeTable
from pieglobalsfind.dwarf.variables import LANGUAGES, VariableReader
from pieglobalsfind.elf.demangle import demangle

MOST_LOCALS = 10_000  # at one pc


@dataclass(frozen=True)
class Local:
    """A variable in a frame, or in registers: `steps` say where it is at the pc. `type` is an index."""

    name: str
    type: int
    steps: Steps
    language: str


@dataclass(frozen=True)
class LocalsAt:
    """All at one pc; `frame_base` is the function's."""

    variables: tuple[Local, ...]
    frame_base: Steps


class LocalReader:
    """The variables of one file's functions; each place is read once."""

    def __init__(self, file: CodeFile) -> None:
        self._file = file
        self._reader = file.reader
        self._expressions = ArgumentReader(file)
        self._units = {unit.die.cu: unit for unit in file.module.units()}
        self._types = VariableReader(file.module, demangle).types
        self.types = TypeTable(self._types)
        self._by_vaddr: dict[int, Optional[LocalsAt]] = {}

    def at(self, vaddr: int) -> Optional[LocalsAt]:
        """What there is at an address, None without debug information."""
        if vaddr not in self._by_vaddr:
            self._by_vaddr[vaddr] = self._read(vaddr)
        return self._by_vaddr[vaddr]

    def _read(self, vaddr: int) -> Optional[LocalsAt]:
        dies = self._file.active(vaddr)
        if not dies:
            return None
        variables: list[Local] = []
        for die, call in zip(dies, self._file.calls(vaddr)):
            for local in self._in_scope(die, call, vaddr, 0):
                if len(variables) < MOST_LOCALS:
                    variables.append(local)
        return LocalsAt(tuple(variables), self._expressions.expression(dies[-1], dw.DW_AT_frame_base, vaddr))

    def _in_scope(self, scope: Die, call: CallAt, vaddr: int, depth: int) -> Iterator[Local]:
        for die in self._reader.children(scope):
            tag = self._reader.tag(die)
            if tag in (dw.DW_TAG_formal_parameter, dw.DW_TAG_variable):
                local = self._local(die, vaddr) if not self._comes_later(die, tag, call) else None
                if local is not None:
                    yield local
            elif tag == dw.DW_TAG_lexical_block and depth < DEEPEST and self._covers(die, vaddr):
                yield from self._in_scope(die, call, vaddr, depth + 1)

    def _covers(self, block: Die, vaddr: int) -> bool:
        return any(low <= vaddr < high for low, high in self._reader.ranges(block, MOST_RANGES))

    def _comes_later(self, die: Die, tag: int, call: CallAt) -> bool:
        """Whether it is declared further down in the source: its place does not hold it yet."""
        if tag != dw.DW_TAG_variable:
            return False
        file, line = self._reader.declared_at(die, self._units)
        return file == call.file and line > call.line > 0

    def _local(self, die: Die, vaddr: int) -> Optional[Local]:
        steps = self._expressions.expression(die, dw.DW_AT_location, vaddr)
        name = self._reader.string(die, dw.DW_AT_name)
        if not steps or not name or steps[0].atom == dw.DW_OP_addr:  # a static one is not a local
            return None
        unit = self._units.get(die.cu)
        language = LANGUAGES.get(self._reader.language(unit.die), "other") if unit is not None else "other"
        return Local(name, self._types.of(die), steps, language)
