"""Evaluates a condition in the rank that hits a breakpoint while GDB has another rank's symbols, and keeps these.

Takes a condition that was evaluated with one rank's own symbols at a place in the code; answers for other ranks that
come there, or says that it can't. To move symbols at every hit takes GDB ten times as long as all else. A condition is
kept for one moment, in which copies lie where they do.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

import gdb

from gdbext.gdb_api.language import in_language
from gdbext.values.expression_template import Template, TemplateMaker
from pieglobalsfind.cache.call_frame_cache import Rules
from pieglobalsfind.debugger import expression_names
from pieglobalsfind.debugger.variable_in_other_ranks import UserFrame
from pieglobalsfind.dwarf.expression import MASK
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.unwind import Activation


@dataclass(frozen=True)
class CodePlace:
    """Where a thread has stopped: its pc, the file of the code, the address there, and how the CFA is found."""

    pc: int
    file: str
    vaddr: int
    rules: Rules


class Conditions:
    """The conditions of breakpoints in one moment."""

    def __init__(self, moment: ProcessView) -> None:
        self.moment = moment
        self._maker = TemplateMaker(moment)
        self._known: dict[tuple[str, str, int], Optional[Template]] = {}

    def is_true(self, rank: int, condition: str) -> Optional[bool]:
        """Whether a condition holds in the rank that has stopped; None if only its own symbols tell."""
        with suppress(gdb.error, RanklensError):  # with the symbols GDB says why
            place = place_of_thread(self.moment)
            template = self._known.get((condition, place.file, place.vaddr)) if place is not None else None
            if place is not None and template is not None:
                with in_language(template.language):
                    return self._value(frame_of_thread(self.moment, rank, place, template.registers), template)
        return None

    def learn(self, rank: int, condition: str, value: bool) -> None:
        """Keep a condition that had a value with the symbols of the rank, where it has stopped."""
        with suppress(gdb.error, RanklensError):
            place, pieces = place_of_thread(self.moment), expression_names.pieces(condition)
            if place is None or (condition, place.file, place.vaddr) in self._known:
                return
            self._known[condition, place.file, place.vaddr] = None
            holder = self.moment.rank(rank)
            has_pages = holder.address_space or holder.pages_of  # one address is several places then
            if pieces is None or expression_names.may_call(pieces) or has_pages:
                return
            registers = range(len(self.moment.table.processor.register_names))
            frame = frame_of_thread(self.moment, rank, place, registers)
            template = self._maker.make(frame, pieces, condition)
            if template is not None and self._value(frame, template) == value:
                self._known[condition, place.file, place.vaddr] = template

    def _value(self, frame: UserFrame, template: Template) -> Optional[bool]:
        try:
            has_all = self._maker.set_places(frame, template)
            return bool(gdb.parse_and_eval(template.text)) if has_all else None
        finally:
            self._maker.forget_places(template)


def place_of_thread(moment: ProcessView) -> Optional[CodePlace]:
    """Where the selected thread has stopped, None in code of which no file is known."""
    pc = register(moment, moment.table.processor.pc)
    place = moment.walker.place(pc)
    if isinstance(place, Absent):
        return None
    file = moment.walker.file(place[0])
    rules = file.rules(place[1]) if file is not None else None
    return CodePlace(pc, *place, rules) if rules is not None else None


def frame_of_thread(moment: ProcessView, rank: int, place: CodePlace, numbers: Iterable[int]) -> UserFrame:
    """The selected thread's innermost frame, with the registers that are wanted."""
    registers = {number: register(moment, number) for number in {*numbers, place.rules.cfa_register}}
    cfa = (registers[place.rules.cfa_register] + place.rules.cfa_offset) & MASK
    activation = Activation(place.pc, registers, cfa, moment.table.processor)
    return UserFrame(moment.rank(rank), activation, place.file, place.vaddr)


def register(moment: ProcessView, number: int) -> int:
    """A general register of the selected thread, by DWARF's number for it."""
    return int(gdb.parse_and_eval(f"${moment.table.processor.register_names[number]}")) & MASK
