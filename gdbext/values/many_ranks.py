"""Evaluates an expression in many suspended ranks without visiting each, as every visit makes GDB read symbols again.

Takes ranks and an expression; gives the values that are provably those of a visit, and leaves out all others. GDB
evaluates the expression in one rank of those that are at the same place. In each other rank its variables are that
rank's own, by their addresses, and everything else is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Optional, Protocol, Union

import gdb

from gdbext.gdb_api.language import C_FAMILY
from gdbext.gdb_api.target import is_core
from gdbext.values.expression_template import Template, TemplateMaker
from gdbext.values.self_contained_types import is_plain_gdb, is_self_contained
from pieglobalsfind.debugger import expression_names
from pieglobalsfind.debugger.declare import ExpressionValue
from pieglobalsfind.debugger.expression_names import ExpressionPiece
from pieglobalsfind.debugger.printed_addresses import Addresses, named
from pieglobalsfind.debugger.variable_in_other_ranks import UserFrame
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.session.process_view import ProcessView

FEW = 4  # ranks at one place for which it is worthwhile
TRIES = 3  # of them in which the expression may have no value
MAY_CALL = "may-call-functions"
MEMORY_ERROR = "Cannot access memory at address 0x"
FORM = re.compile(r"(?:/[xduotczf])?")
NAME = " <"

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
        self._templates = TemplateMaker(debugger.moment())

    def values(self, numbers: Sequence[int], expression: str, form: str) -> Values:
        """What is known of some of the ranks, by their numbers."""
        pieces = expression_names.pieces(expression)
        values: Values = {}
        if pieces is None or len(numbers) < FEW or not FORM.fullmatch(form) or not is_plain_gdb():
            return values
        calls = expression_names.may_call(pieces)
        for group in self._templates.same.alike(numbers):
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
        template: Optional[Template] = None
        try:
            template = self._templates.make(frame, pieces, expression)
            return self._filled(frame, value, group, template, form) if template is not None else {}
        except gdb.error:
            return {}
        finally:
            if template is not None:
                self._templates.forget_places(template)

    def _filled(
        self, first: UserFrame, expected: Union[ExpressionValue, Absent], group: Group, template: Template, form: str
    ) -> Values:
        """The values of all ranks in whose text each address has the name that it has to that rank's symbols."""
        names, values, is_checked = SymbolNames(), Values(), False
        has_names = not form and template.language in C_FAMILY  # GDB names addresses in what it prints
        if self._at(first, template, form) != expected:
            return values
        if isinstance(expected, ExpressionValue) and not has_names and NAME in expected.text:
            return values
        for frame in group:
            value = self._at(frame, template, form)
            if isinstance(value, Absent):
                if value == expected or value.reason.startswith(MEMORY_ERROR):
                    values[frame.rank.rank] = value
                continue
            if not is_checked and not is_self_contained(gdb.parse_and_eval(template.text).type):
                return {}
            is_checked = True
            text: Optional[str] = value.text
            if has_names and frame is not first:
                text = named(value.text, Addresses.of(frame.rank, first.rank), names.after)
            if text is not None:
                values[frame.rank.rank] = ExpressionValue(text, value.address)
        return values

    def _at(self, frame: UserFrame, template: Template, form: str) -> Union[ExpressionValue, Absent]:
        if not self._templates.set_places(frame, template):
            return Absent("the rank has no such variable")
        return self._debugger.value_here(template.text, form)


def is_of_no_symbol(value: Absent) -> bool:
    """Whether GDB knows no such name, as in every rank at the same place."""
    return value.reason.startswith('No symbol "') and value.reason.endswith("in current context")
