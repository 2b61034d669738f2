"""Reads a variable in many suspended ranks without having LLDB make frames for each.

Takes ranks and an expression; gives the values that are provably those of LLDB in each rank, and leaves out all others.
LLDB finds the variable in one rank of those that are at the same place. In each other rank it is read at that rank's
own address, as a value of the same type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Optional, Protocol, Union

import lldb

from lldbext.lldb_api import value_text
from pieglobalsfind.debugger.declare import ExpressionValue
from pieglobalsfind.debugger.printed_addresses import Addresses, named
from pieglobalsfind.debugger.variable_in_other_ranks import InObject, SameVariable, UserFrame
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.session.process_view import ProcessView

FEW = 4  # ranks at one place for which it is worthwhile
PATH = re.compile(r"(?P<name>(?:\w+::)*[A-Za-z_]\w*)(?P<parts>(?:\.[A-Za-z_]\w*|\[\d+\])*)")
PART = re.compile(r"\.(?P<member>\w+)|\[(?P<index>\d+)\]")
FORM = re.compile(r"(?:/[xduotcz])?")
STATIC = (lldb.eValueTypeVariableGlobal, lldb.eValueTypeVariableStatic)

Values = dict[int, Union[ExpressionValue, Absent]]


class LldbVariableFinder(Protocol):
    """How LLDB finds a variable from a rank's own frame."""

    def moment(self) -> ProcessView:
        """Return the process between two stops."""

    def in_own_frame(self, rank: int, expression: str) -> Any:
        """Find a variable from a rank's own frame."""


class ManyRanks:
    """The ranks of one process of LLDB's, and what it debugs."""

    def __init__(self, debugger: LldbVariableFinder, target: Any) -> None:
        self._debugger, self._target = debugger, target
        moment = debugger.moment()
        self._same = SameVariable(moment)
        self._names: dict[int, str] = {}  # by address

    def values(self, numbers: Sequence[int], expression: str, form: str) -> Values:
        """What is known of some of the ranks, by their numbers."""
        path, by_rank = PATH.fullmatch(expression), Values()
        if path is None or len(numbers) < FEW or not FORM.fullmatch(form):
            return by_rank
        for group in self._same.alike(numbers):
            if len(group) >= FEW:
                with suppress(RanklensError):  # a visit to each of them says why
                    by_rank.update(self._of_group(group, path, form))
        return by_rank

    def _of_group(self, group: Sequence[UserFrame], path: re.Match[str], form: str) -> Mapping[int, ExpressionValue]:
        first = group[0]
        whole = self._debugger.in_own_frame(first.rank.rank, path["name"])
        part = part_of(whole, path["parts"]) if whole is not None else None
        if part is None or whole.GetType().GetCanonicalType().IsReferenceType():
            return {}
        start, address = whole.GetLoadAddress(), part.GetLoadAddress()
        variable = self._same.variable(first, path["name"], start, whole.GetType().GetByteSize())
        is_static = whole.GetValueType() in STATIC
        if variable is None or isinstance(variable, InObject) != is_static or address == lldb.LLDB_INVALID_ADDRESS:
            return {}
        expected = ExpressionValue(value_text.text(part, form), address)
        if self._at(part, address, form) != expected:
            return {}
        by_rank = {first.rank.rank: expected}
        for frame in group[1:]:
            place = self._same.address(frame, variable)
            if place is not None:
                value = self._at(part, place + address - start, form)
                text = value.text if form else named(value.text, Addresses.of(frame.rank, first.rank), self._name_after)
                if text is not None:
                    by_rank[frame.rank.rank] = ExpressionValue(text, value.address)
        return by_rank

    def _name_after(self, address: int) -> str:
        """What stands after an address of which LLDB has the symbols."""
        if address not in self._names:
            self._names[address] = value_text.symbolic(self._target, address).removeprefix(f"{address:#x}")
        return self._names[address]

    def _at(self, like: Any, address: int, form: str) -> ExpressionValue:
        """What lies at an address, as a value of another one's type."""
        place = lldb.SBAddress(address, self._target)
        value = self._target.CreateValueFromAddress(str(like.GetName()), place, like.GetType())
        return ExpressionValue(value_text.text(value, form), address)


def part_of(value: Any, parts: str) -> Optional[Any]:
    """The member or element of a variable that is part of its own memory, None if a pointer leads to it."""
    for part in PART.finditer(parts):
        kind = value.GetType().GetCanonicalType()
        if part["member"] is not None:
            if kind.IsPointerType() or kind.IsReferenceType():
                return None
            value = value.GetNonSyntheticValue().GetChildMemberWithName(part["member"])
        else:
            if kind.GetTypeClass() != lldb.eTypeClassArray or int(part["index"]) >= value.GetNumChildren():
                return None
            value = value.GetChildAtIndex(int(part["index"]))
        if not value.IsValid() or value.GetError().Fail():
            return None
    return value
