"""What a word of an object is, by the best evidence there is: relocation, dynamic section, or DWARF type.

Takes an object's file and its variables; answers for an offset, without looking at any rank. It never guesses: what
nothing describes is "untyped".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Optional, Union

from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Array, Base, TypeTable, Variable, Variables
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.processor import Processor, Relocations
from pieglobalsfind.model import Absent, Object

from ..program.program_file import ProgramFile
from ..terminal.text import harmless
from ..values.layout import WORD, holds_address, is_pointer, is_told_whole, leaves_at, pointer_offsets
from .ground import AMBIGUOUS, MANGLED, NO_POINTER, PROVEN, TYPED, UNTYPED, Ground

# Words of glibc's jmp_buf (bits/types/struct___jmp_buf_tag.h): registers, of which some are mangled
JUMP_WORD = re.compile(r"(?:^|[.>])__jmpbuf\[(\d+)\]$")


def mangled_jump_words(processor: Processor) -> frozenset[int]:
    """The words of a jmp_buf that are mangled."""
    (layout,) = processor.contexts["jmp_buf"]
    return frozenset(rule.offset // WORD for rule in layout if rule.dwarf_register in processor.mangled)


class ObjectEvidence:
    """All evidence about one object; offsets are from its base, as in every copy."""

    def __init__(self, elf_object: Object, path: Union[str, Absent], declared: Union[Variables, Absent]) -> None:
        self._object = elf_object
        self.relocations: dict[int, int] = {}
        self._kinds: Optional[Relocations] = None
        self._mangled = frozenset[int]()
        self._dynamic = range(0)
        self.absent: tuple[Absent, ...] = tuple(part for part in (path, declared) if isinstance(part, Absent))
        if isinstance(path, str):
            self._read_file(path)
        self.types = declared.types if isinstance(declared, Variables) else TypeTable(())
        variables = declared.variables if isinstance(declared, Variables) else ()
        self._variables = [variable for variable in variables if variable.address is not None and variable.size > 0]
        self._starts = [self.offset_of(variable) for variable in self._variables]
        self._largest = max((variable.size for variable in self._variables), default=0)
        self._objects_in_bytes: set[Variable] = set()
        self._grounds: dict[int, Ground] = {}

    def _read_file(self, path: str) -> None:
        try:
            with ProgramFile(path) as file:
                self._read_relocations(file, self._object.load_bias - self._object.base)
        except RanklensError as error:
            self.absent += (Absent(error.sentence, error.hint),)

    def _read_relocations(self, file: ProgramFile, bias: int) -> None:
        self._kinds = kinds = file.processor.relocations
        self._mangled = mangled_jump_words(file.processor)
        self.relocations = {
            relocation.offset + bias: relocation.type
            for relocation in file.relocations()
            if relocation.type in kinds.names
        }
        dynamic = file.dynamic_section
        self._dynamic = range(dynamic.start + bias, dynamic.stop + bias)

    def offset_of(self, variable: Variable) -> int:
        """A variable's distance from the object's base."""
        return (variable.address or 0) + self._object.load_bias - self._object.base

    def ground(self, offset: int) -> Ground:
        """What the word at `offset` is."""
        if offset not in self._grounds:
            self._grounds[offset] = self._decide(offset)
        return self._grounds[offset]

    def _decide(self, offset: int) -> Ground:
        typed = self._typed(offset)
        relocation = self.relocations.get(offset)
        if relocation is not None and self._kinds is not None:
            source = f"relocation {self._kinds.names.get(relocation, relocation)}"
            in_got = relocation in (self._kinds.glob_dat, self._kinds.jump_slot)
            return Ground(PROVEN, source, typed.symbol or ("global offset table" if in_got else ""), typed.type)
        if offset in self._dynamic:
            return Ground(PROVEN, "the loader relocates the dynamic section in place", "_DYNAMIC")
        return typed

    def _typed(self, offset: int) -> Ground:
        candidates = list(self._covering(offset))
        if not candidates:
            return Ground(UNTYPED, "neither a relocation nor a type describes it")
        grounds = [self._by_type(candidate, offset - self.offset_of(candidate)) for candidate in candidates]
        kinds = {ground.kind for ground in grounds}
        if len(kinds) > 1:  # common blocks that units lay out differently
            return Ground(AMBIGUOUS, "variables that overlap say different things", grounds[0].symbol, grounds[0].type)
        return grounds[0]

    def _covering(self, offset: int) -> Iterator[Variable]:
        """The variables that share a byte with the word."""
        index = bisect_right(self._starts, offset + WORD - 1) - 1
        while index >= 0 and self._starts[index] + self._largest > offset:
            if self._starts[index] + self._variables[index].size > offset:
                yield self._variables[index]
            index -= 1

    def _by_type(self, variable: Variable, offset: int) -> Ground:
        ground = ground_by_type(self.types, variable.type, offset, variable.name, variable.language, self._mangled)
        if variable in self._objects_in_bytes and ground.kind == NO_POINTER and ground.type:
            source = "DWARF: bytes, but they hold a virtual table's address"
            return Ground(AMBIGUOUS, source, ground.symbol, ground.type)
        return ground

    def holds_object(self, offset: int) -> None:
        """Say that the word at `offset` is a virtual table's address: bytes around it may be an object."""
        for variable in self._covering(offset):
            element = self.types.strip(variable.type)
            while isinstance(element, Array):
                element = self.types.strip(element.element)
            if isinstance(element, Base) and element.size == 1:
                self._objects_in_bytes.add(variable)
                self._grounds.clear()

    @cached_property
    def _holders(self) -> list[tuple[Variable, list[int]]]:
        """Variables with pointers, and where in them these are."""
        candidates = ((variable, pointer_offsets(self.types, variable.type)) for variable in self._variables)
        return [(variable, offsets) for variable, offsets in candidates if offsets]

    def holders(self) -> Iterator[Variable]:
        """The variables that hold pointers."""
        return (variable for variable, _ in self._holders)

    def pointers(self) -> Iterator[int]:
        """Offsets of every word that a relocation or a type calls a pointer, with repetitions."""
        yield from self.relocations
        for variable, offsets in self._holders:
            start = self.offset_of(variable)
            yield from (start + offset for offset in offsets)


def ground_by_type(
    types: TypeTable, index: int, offset: int, name: str, language: str, mangled: frozenset[int]
) -> Ground:
    """What the type of an object says of the word at an offset in it; `name` is how the program calls the object.

    `mangled` are the words of a jmp_buf that are.
    """
    leaves = leaves_at(types, index, offset)
    pointers = [leave for leave in leaves if is_pointer(types, leave, offset)]
    leaf = next(iter(pointers or leaves), None)
    symbol = harmless(name + (leaf.path if leaf is not None else ""))
    if leaf is None and not is_told_whole(types, index):
        return Ground(UNTYPED, "DWARF does not describe what is there", symbol)
    if leaf is None:
        return Ground(NO_POINTER, "DWARF: padding", symbol)
    type_text = harmless(type_name(types, leaf.type, language))
    if pointers and any(leave.in_union for leave in leaves):
        return Ground(AMBIGUOUS, "DWARF: a union with a pointer", symbol, type_text)
    if pointers:
        return Ground(TYPED, "DWARF: a pointer", symbol, type_text)
    jump = JUMP_WORD.search(leaf.path) if leaf.offset == offset else None
    if jump is not None and int(jump.group(1)) in mangled:
        return Ground(MANGLED, "DWARF: what setjmp has kept, mangled", symbol, type_text)
    if jump is not None:
        return Ground(AMBIGUOUS, "DWARF: a register that setjmp has kept", symbol, type_text)
    if holds_address(types, leaf):
        return Ground(AMBIGUOUS, "DWARF: an integer type made for addresses", symbol, type_text)
    return Ground(NO_POINTER, f"DWARF: {type_text}", symbol, type_text)
