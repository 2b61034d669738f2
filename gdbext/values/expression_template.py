"""Writes an expression so that it can be evaluated for any rank at the same place, with one rank's symbols.

Takes an expression and the rank's frame that GDB stands in; gives the expression with a convenience variable for each
name, and what each is in another rank: a variable at that rank's own address, or what all ranks have in common.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Union

import gdb

from gdbext.gdb_api.language import C_FAMILY, language
from gdbext.gdb_api.run_commands import execute
from gdbext.values.self_contained_types import REFERENCES, bare_type, may_select_static
from gdbext.values.thread_locals import file_of_storage
from pieglobalsfind.debugger import expression_names
from pieglobalsfind.debugger.expression_names import ExpressionPiece
from pieglobalsfind.debugger.variable_in_other_ranks import (
    WORD,
    InFrame,
    InMemory,
    InObject,
    InRegister,
    SameVariable,
    UserFrame,
    Variable,
)
from pieglobalsfind.session.process_view import ProcessView

PLACE = "_rank_place{}"  # the convenience variables that hold variables' addresses
NAMELESS = (gdb.SYMBOL_LOC_TYPEDEF, gdb.SYMBOL_LOC_CONST)  # types and enumerators: the same in all ranks
LANGUAGES = (*C_FAMILY, "fortran")
OWN_NUMBER = "_rank"
# GDB's variables whose names begin with "_" and that are the same in all ranks, and its functions of their arguments.
SAME_VARIABLES = ("_", "__", "_exitcode", "_rank_count")
SAME_FUNCTIONS = ("_strlen", "_streq", "_memeq", "_regex", "_as_string", "_isvoid", "_cimag", "_creal", "_rank_of")
HISTORY = re.compile(r"\d*|\$\d*")  # what GDB has printed before: $, $3, $$, $$2
THIS = "this"
GDBS_REGISTERS = ("pc", "sp", "fp", "ps")  # what GDB calls them on every processor


@dataclass(frozen=True)
class RankNumber:
    """`$_rank`."""


@dataclass(frozen=True)
class Referent:
    """What a reference of C++'s or an argument of Fortran's is; `reference` is what holds its address."""

    reference: Union[InFrame, InRegister]


NameVariable = Union[Variable, RankNumber, Referent]


@dataclass(frozen=True)
class NameMeaning:
    """What a name in the expression means: a variable, or with `variable` None what is the same in all ranks.

    `type` is that of the variable; `member`: the name is one of the object that the variable, `this`, points to.
    """

    name: str
    type: gdb.Type
    variable: Optional[NameVariable]
    member: str = ""

    def text(self, place: str) -> str:
        """What stands for the name; the convenience variable has its value, or is a pointer to it."""
        if self.variable is None:
            return self.name
        value = f"${place}" if isinstance(self.variable, (InRegister, RankNumber)) else f"(*${place})"
        return f"({value}->{self.member})" if self.member else value


@dataclass(frozen=True)
class Template:
    """The expression with convenience variables instead of names; `places`: their numbers, what they are, and types."""

    text: str
    places: tuple[tuple[int, NameVariable, gdb.Type], ...]
    language: str

    @property
    def registers(self) -> list[int]:
        """Return the numbers of the registers that have one of the variables."""
        variables = [kind.reference if isinstance(kind, Referent) else kind for _, kind, _ in self.places]
        return [variable.number for variable in variables if isinstance(variable, InRegister)]


class TemplateMaker:
    """Templates of one moment."""

    def __init__(self, moment: ProcessView) -> None:
        self._moment = moment
        self.same = SameVariable(moment)

    def make(self, frame: UserFrame, pieces: tuple[ExpressionPiece, ...], expression: str) -> Optional[Template]:
        """None if it is not known of each name that it means the same in other ranks."""
        spoken = language()
        if spoken not in LANGUAGES:
            return None
        if execute(f"macro expand {expression}").strip() != f"expands to: {expression}":
            return None
        names = expression_names.names(pieces)
        not_called = {piece.text for piece in pieces if piece.is_name and not piece.is_called}
        name_meanings = [self._meaning(frame, name, name not in not_called) for name in names]
        meanings = [meaning for meaning in name_meanings if meaning is not None]
        if len(meanings) < len(names):
            return None
        members = {piece.member for piece in pieces} | {meaning.member for meaning in meanings}
        if may_select_static((meaning.type for meaning in meanings), members - {""}):
            return None
        texts = {name: meaning.text(PLACE.format(at)) for at, (name, meaning) in enumerate(zip(names, meanings))}
        places = tuple(
            (at, name_meaning.variable, name_meaning.type)
            for at, name_meaning in enumerate(meanings)
            if name_meaning.variable is not None
        )
        return Template(expression_names.replaced(pieces, texts.__getitem__), places, spoken)

    def _meaning(self, frame: UserFrame, name: str, is_called: bool) -> Optional[NameMeaning]:
        if name.startswith("$"):
            return self._debuggers_own(name, is_called)
        try:
            symbol, is_member = gdb.lookup_symbol(name, gdb.selected_frame().block())
        except RuntimeError:  # the frame has no block
            return None
        if is_member:
            variable = self._variable(frame, THIS, gdb.parse_and_eval(THIS), True)
            return None if variable is None else NameMeaning(THIS, gdb.parse_and_eval(THIS).type, variable, name)
        if symbol is None:
            return None
        if symbol.addr_class in NAMELESS:
            return NameMeaning(name, symbol.type, None) if symbol.type is not None else None
        if is_called and symbol.addr_class == gdb.SYMBOL_LOC_BLOCK:  # GDB refuses to call it, whichever copy it means
            return NameMeaning(name, symbol.type or gdb.lookup_type("void"), None)
        if file_of_storage(name):
            return None
        value = gdb.parse_and_eval(name)
        if bare_type(value.type).code in REFERENCES:
            reference = self.same.register(frame, name, WORD) or self.same.in_frame(frame, name)
            return self._referent(frame, name, value.referenced_value(), reference)
        variable = self._variable(frame, name, value, symbol.needs_frame)
        if variable is None:
            return self._referent(frame, name, value, self.same.reference(frame, name))
        return NameMeaning(name, value.type, variable)

    def _referent(
        self, frame: UserFrame, name: str, value: gdb.Value, reference: Union[InFrame, InRegister, None]
    ) -> Optional[NameMeaning]:
        """What a name means by an address that the frame has, if it is known where."""
        if reference is None or value.type.dynamic or value.address is None:
            return None
        meaning = NameMeaning(name, value.type, Referent(reference))
        pointer = self._pointer(frame, Referent(reference), value.type)
        return meaning if pointer is not None and int(pointer) == int(value.address) else None

    def _debuggers_own(self, name: str, is_called: bool) -> Optional[NameMeaning]:
        """What `$NAME` means, if it is known how it differs from rank to rank."""
        own = name[1:]
        if is_called:
            return NameMeaning(name, gdb.lookup_type("void"), None) if own in SAME_FUNCTIONS else None
        table = self._moment.table
        number = table.processor.kept_registers.get(own)
        if number is not None:
            return NameMeaning(name, gdb.parse_and_eval(name).type, InRegister(number, WORD))
        value = gdb.parse_and_eval(name)
        if own == OWN_NUMBER:
            return NameMeaning(name, value.type, RankNumber())
        if not HISTORY.fullmatch(own) and (is_register(own) or not is_same(own)):
            return None
        return NameMeaning(name, value.type, None)

    def _variable(self, frame: UserFrame, name: str, value: gdb.Value, is_of_frame: bool) -> Optional[Variable]:
        """The variable of a name; a frame's may lie elsewhere: Fortran passes arguments by their addresses."""
        size = int(value.type.sizeof)
        if value.type.dynamic or value.is_optimized_out:
            return None
        if value.address is None:
            return self.same.register(frame, name, size)
        variable = self.same.variable(frame, name, int(value.address), size)
        return variable if isinstance(variable, InObject) != is_of_frame else None

    def set_places(self, frame: UserFrame, template: Template) -> bool:
        """Give the convenience variables a rank's values; returns whether it has all of the variables."""
        for at, variable, kind in template.places:
            if isinstance(variable, RankNumber):
                value: Optional[gdb.Value] = gdb.Value(frame.rank.rank)
            elif isinstance(variable, InRegister):
                value = self._content(frame, variable, kind)
            else:
                value = self._pointer(frame, variable, kind)
            if value is None:
                return False
            gdb.set_convenience_variable(PLACE.format(at), value)
        return True

    def _content(self, frame: UserFrame, variable: InRegister, kind: gdb.Type) -> Optional[gdb.Value]:
        content = self.same.content(frame, variable)
        return gdb.Value(content, kind) if content is not None else None

    def _pointer(self, frame: UserFrame, variable: Union[InMemory, Referent], kind: gdb.Type) -> Optional[gdb.Value]:
        """A pointer to a variable of a type."""
        if isinstance(variable, Referent):
            reference = variable.reference
            if isinstance(reference, InRegister):
                return self._content(frame, reference, kind.pointer())
            pointer = self._pointer(frame, reference, kind.pointer())
            return pointer.dereference() if pointer is not None else None
        address = self.same.address(frame, variable)
        return gdb.Value(address).cast(kind.pointer()) if address is not None else None

    @staticmethod
    def forget_places(template: Template) -> None:
        """Take the values out of the convenience variables."""
        for at, _, _ in template.places:
            gdb.set_convenience_variable(PLACE.format(at), None)


def is_register(name: str) -> bool:
    """Whether `$name` is a register to GDB, one that is a part of another included.

    Without `info registers`: inside a breakpoint's `stop` a command that asks for the thread's frame ends the stop.
    """
    registers = gdb.selected_inferior().architecture().registers()
    return name in GDBS_REGISTERS or registers.find(name) is not None


def is_same(name: str) -> bool:
    """Whether `$name` is a convenience variable with one value for all ranks."""
    value = gdb.convenience_variable(name)
    if value is None or value.type.code == gdb.TYPE_CODE_INTERNAL_FUNCTION:
        return False
    return name in SAME_VARIABLES or not name.startswith("_")
