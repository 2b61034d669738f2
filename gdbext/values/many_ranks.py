"""Evaluates an expression in many suspended ranks without visiting each, as every visit makes GDB read symbols again.

Takes ranks and an expression; gives the values that are provably those of a visit, and leaves out all others. GDB
evaluates the expression in one rank of those that are at the same place. In each other rank its variables are that
rank's own, by their addresses, and everything else is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Optional, Protocol, Union

import gdb

from gdbext.gdb_api.language import C_FAMILY, language
from gdbext.gdb_api.run_commands import execute
from gdbext.gdb_api.target import is_core
from gdbext.values.self_contained_types import REFERENCES, bare_type, is_plain_gdb, is_self_contained, may_select_static
from gdbext.values.thread_locals import is_thread_local
from pieglobalsfind.debugger import expression_names
from pieglobalsfind.debugger.declare import ExpressionValue
from pieglobalsfind.debugger.expression_names import ExpressionPiece
from pieglobalsfind.debugger.printed_addresses import Addresses, named
from pieglobalsfind.debugger.variable_in_other_ranks import WORD, InRegister, SameVariable, UserFrame, Variable
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.session.process_view import ProcessView

FEW = 4  # ranks at one place for which it is worthwhile
TRIES = 3  # of them in which the expression may have no value
PLACE = "_rank_place{}"  # the convenience variables that hold variables' addresses
NAMELESS = (gdb.SYMBOL_LOC_TYPEDEF, gdb.SYMBOL_LOC_CONST)  # types and enumerators: the same in all ranks
LANGUAGES = (*C_FAMILY, "fortran")
MAY_CALL = "may-call-functions"
MEMORY_ERROR = "Cannot access memory at address 0x"
OWN_NUMBER = "_rank"
# GDB's variables whose names begin with "_" and that are the same in all ranks, and its functions of their arguments.
SAME_VARIABLES = ("_", "__", "_exitcode", "_rank_count")
SAME_FUNCTIONS = ("_strlen", "_streq", "_memeq", "_regex", "_as_string", "_isvoid", "_cimag", "_creal", "_rank_of")
HISTORY = re.compile(r"\d*|\$\d*")  # what GDB has printed before: $, $3, $$, $$2
FORM = re.compile(r"(?:/[xduotczf])?")
NAME = " <"
THIS = "this"

Values = dict[int, Union[ExpressionValue, Absent]]
Group = Sequence[UserFrame]


class GdbEvaluator(Protocol):
    """How GDB evaluates an expression where it stands and in one rank, and how it goes there."""

    def moment(self) -> ProcessView:
        """Return the selected inferior between two stops."""

    def at_user_frame(self, rank: int) -> AbstractContextManager[None]:
        """Visit a rank's frame that the user would see first."""

    def value_here(self, expression: str, form: str) -> Union[ExpressionValue, Absent]:
        """Evaluate an expression in the selected frame."""

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[ExpressionValue, Absent]:
        """Evaluate an expression in a rank's own frame."""


@dataclass(frozen=True)
class RankNumber:
    """`$_rank`."""


@dataclass(frozen=True)
class NameMeaning:
    """What a name in the expression means: a variable, or with `variable` None what is the same in all ranks.

    `type` is that of the variable; `member`: the name is one of the object that the variable, `this`, points to.
    """

    name: str
    type: gdb.Type
    variable: Union[Variable, RankNumber, None]
    member: str = ""

    def text(self, place: str) -> str:
        """What stands for the name; the convenience variable has its value, or is a pointer to it."""
        if self.variable is None:
            return self.name
        value = f"${place}" if isinstance(self.variable, (InRegister, RankNumber)) else f"(*${place})"
        return f"({value}->{self.member})" if self.member else value


@dataclass(frozen=True)
class Template:
    """The expression with convenience variables in place of its own: `places` are their numbers, what they are, types.

    `has_names`: GDB names addresses in what it prints.
    """

    text: str
    form: str
    places: tuple[tuple[int, Union[Variable, RankNumber], gdb.Type], ...]
    has_names: bool


class SymbolNames:
    """` <symbol+4>` after addresses, as GDB has it."""

    def __init__(self) -> None:
        self._pointer = gdb.lookup_type("void").pointer()
        self._known: dict[int, str] = {}

    def after(self, address: int) -> str:
        """Return what GDB prints after a pointer's number: ` <symbol+4>`, or ""."""
        if address not in self._known:
            text = gdb.Value(address).cast(self._pointer).format_string()
            self._known[address] = text.removeprefix(f"{address:#x}")
        return self._known[address]


class ManyRanks:
    """The ranks of the selected inferior; the debugger goes back to where the user was afterwards."""

    def __init__(self, debugger: GdbEvaluator) -> None:
        self._debugger = debugger
        moment = debugger.moment()
        self._same = SameVariable(moment)

    def values(self, numbers: Sequence[int], expression: str, form: str) -> Values:
        """What is known of some of the ranks, by their numbers."""
        pieces = expression_names.pieces(expression)
        values: Values = {}
        if pieces is None or len(numbers) < FEW or not FORM.fullmatch(form) or not is_plain_gdb():
            return values
        calls = expression_names.may_call(pieces)
        for group in self._same.alike(numbers):
            if len(group) >= FEW:
                with suppress(RanklensError):  # a visit to each of them says why
                    values.update(self._of_group(group, pieces, expression, form, calls))
        return values

    def _of_group(
        self, group: Group, pieces: tuple[ExpressionPiece, ...], expression: str, form: str, calls: bool
    ) -> Values:
        """What the first rank says, that has a value or else has none, tells what is to be read in the others."""
        for number, frame in enumerate(group[:TRIES], 1):
            with self._debugger.at_user_frame(frame.rank.rank):
                if calls and gdb.parameter(MAY_CALL) and not is_core():
                    return {}  # what is called runs in the rank alone of which the call is
                value = self._debugger.evaluate(frame.rank.rank, expression, form)
                if isinstance(value, Absent) and is_of_no_symbol(value):
                    return {user_frame.rank.rank: value for user_frame in group}
                if isinstance(value, ExpressionValue) or number == min(TRIES, len(group)):
                    return self._like(frame, value, group, pieces, expression, form)
        return {}

    def _like(
        self,
        frame: UserFrame,
        value: Union[ExpressionValue, Absent],
        group: Group,
        pieces: tuple[ExpressionPiece, ...],
        expression: str,
        form: str,
    ) -> Values:
        """The values of a group, one rank's frame of which is selected, and its value known, or why it has none."""
        try:
            template = self._template(frame, pieces, expression, form)
            return self._filled(frame, value, group, template) if template is not None else {}
        except gdb.error:
            return {}
        finally:
            for at in range(len(pieces)):
                gdb.set_convenience_variable(PLACE.format(at), None)

    # ---- the template ----

    def _template(
        self, frame: UserFrame, pieces: tuple[ExpressionPiece, ...], expression: str, form: str
    ) -> Optional[Template]:
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
        return Template(
            expression_names.replaced(pieces, texts.__getitem__), form, places, not form and spoken in C_FAMILY
        )

    def _meaning(self, frame: UserFrame, name: str, is_called: bool) -> Optional[NameMeaning]:
        if name.startswith("$"):
            return self._debuggers_own(name, is_called)
        try:
            symbol, is_member = gdb.lookup_symbol(name, gdb.selected_frame().block())
        except RuntimeError:  # the frame has no block
            return None
        if is_member:
            variable = self._variable(frame, THIS, gdb.parse_and_eval(THIS))
            return None if variable is None else NameMeaning(THIS, gdb.parse_and_eval(THIS).type, variable, name)
        if symbol is None:
            return None
        if symbol.addr_class in NAMELESS:
            return NameMeaning(name, symbol.type, None) if symbol.type is not None else None
        if is_called and symbol.addr_class == gdb.SYMBOL_LOC_BLOCK:  # GDB refuses to call it, whichever copy it means
            return NameMeaning(name, symbol.type or gdb.lookup_type("void"), None)
        if is_thread_local(name):
            return None
        value = gdb.parse_and_eval(name)
        variable = self._variable(frame, name, value)
        return None if variable is None else NameMeaning(name, value.type, variable)

    def _debuggers_own(self, name: str, is_called: bool) -> Optional[NameMeaning]:
        """What `$NAME` means, if it is known how it differs from rank to rank."""
        own = name[1:]
        if is_called:
            return NameMeaning(name, gdb.lookup_type("void"), None) if own in SAME_FUNCTIONS else None
        number = self._debugger.moment().table.processor.kept_registers.get(own)
        if number is not None:
            return NameMeaning(name, gdb.parse_and_eval(name).type, InRegister(number, WORD))
        value = gdb.parse_and_eval(name)
        if own == OWN_NUMBER:
            return NameMeaning(name, value.type, RankNumber())
        if not HISTORY.fullmatch(own) and (is_register(own) or not is_same(own)):
            return None
        return NameMeaning(name, value.type, None)

    def _variable(self, frame: UserFrame, name: str, value: gdb.Value) -> Optional[Variable]:
        size = int(value.type.sizeof)
        if value.type.dynamic or bare_type(value.type).code in REFERENCES or value.is_optimized_out:
            return None
        if value.address is None:
            return self._same.register(frame, name, size)
        return self._same.variable(frame, name, int(value.address), size)

    # ---- the values ----

    def _filled(
        self, first: UserFrame, expected: Union[ExpressionValue, Absent], group: Group, template: Template
    ) -> Values:
        """The values of all ranks in whose text each address has the name that it has to that rank's symbols."""
        names, values, is_checked = SymbolNames(), Values(), False
        if self._at(first, template) != expected:
            return values
        if isinstance(expected, ExpressionValue) and not template.has_names and NAME in expected.text:
            return values
        for frame in group:
            value = self._at(frame, template)
            if isinstance(value, Absent):
                if value == expected or value.reason.startswith(MEMORY_ERROR):
                    values[frame.rank.rank] = value
                continue
            if not is_checked and not is_self_contained(gdb.parse_and_eval(template.text).type):
                return {}
            is_checked = True
            text: Optional[str] = value.text
            if template.has_names and frame is not first:
                text = named(value.text, Addresses.of(frame.rank, first.rank), names.after)
            if text is not None:
                values[frame.rank.rank] = ExpressionValue(text, value.address)
        return values

    def _at(self, frame: UserFrame, template: Template) -> Union[ExpressionValue, Absent]:
        if not self._set_places(frame, template):
            return Absent("the rank has no such variable")
        return self._debugger.value_here(template.text, template.form)

    def _set_places(self, frame: UserFrame, template: Template) -> bool:
        """Whether the rank has all of the variables."""
        for at, variable, kind in template.places:
            if isinstance(variable, RankNumber):
                value: Optional[gdb.Value] = gdb.Value(frame.rank.rank)
            elif isinstance(variable, InRegister):
                content = self._same.content(frame, variable)
                value = gdb.Value(content, kind) if content is not None else None
            else:
                address = self._same.address(frame, variable)
                value = gdb.Value(address).cast(kind.pointer()) if address is not None else None
            if value is None:
                return False
            gdb.set_convenience_variable(PLACE.format(at), value)
        return True


def is_of_no_symbol(value: Absent) -> bool:
    """Whether GDB knows no such name, as in every rank at the same place."""
    return value.reason.startswith('No symbol "') and value.reason.endswith("in current context")


def is_register(name: str) -> bool:
    """Whether `$name` is a register to GDB, one that is a part of another included."""
    try:
        execute(f"info registers {name}")
    except RanklensError:
        return False
    return True


def is_same(name: str) -> bool:
    """Whether `$name` is a convenience variable with one value for all ranks."""
    value = gdb.convenience_variable(name)
    if value is None or value.type.code == gdb.TYPE_CODE_INTERNAL_FUNCTION:
        return False
    return name in SAME_VARIABLES or not name.startswith("_")
