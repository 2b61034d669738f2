"""The line of a frame in GDB's backtraces, as a pattern into which other ranks' addresses and arguments are filled.

Takes a line that GDB has printed for one rank, and computes it as well: only what comes out the same is a pattern. It
serves every frame at the same place whose callers are at the same places, in whichever rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Optional

import gdb

from gdbext.backtraces.argument_text import SHORT, FrameMemory, Language, Printer, SymbolNames
from gdbext.gdb_api.frame import parameters
from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.call_arguments import ArgumentReader, CallsAt, Parameter, Passed
from pieglobalsfind.dwarf.expression import MASK, UnsupportedError, signed
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import Rank
from pieglobalsfind.stacks.frame_values import CFA_ALONE, FrameScope, address, entry_value, value
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import Activation

OPTIMIZED_OUT = "<optimized out>"
NOWHERE = Parameter((), None, False)
CALLERS = 2  # how many callers an argument's value may depend on; of others all callers' places must be the same
NO_CALLERS, ALL_CALLERS = -1, 1 << 20
FAILURES = (UnsupportedError, RanklensError, gdb.error, RuntimeError)  # GDB raises RuntimeError for lost frames

Place = tuple[str, int]  # a file and a p_vaddr in it
Key = tuple[int, bool, tuple[Place, ...]]


class DeepError(UnsupportedError):
    """An argument depends on more than the next callers."""


@dataclass
class GdbStack:
    """One rank's frames, innermost first; what expressions need of them is made when one asks."""

    rank: Rank
    activations: list[Activation]
    memory: Memory
    places: tuple[Place, ...]
    readers: list[ArgumentReader]
    frame_memory: FrameMemory
    frames: dict[tuple[int, int], FrameScope] = field(default_factory=dict)

    def calls(self, number: int) -> Optional[CallsAt]:
        """Return the calls at a frame's pc, inlined ones first, or None without debug information."""
        return self.readers[number].calls(self.places[number][1])

    def frame(self, number: int, callers: int) -> FrameScope:
        """A frame whose expressions may ask that many callers what they passed."""
        key = (number, callers)
        if key not in self.frames:
            activation, calls = self.activations[number], self.calls(number)
            bias = activation.lookup - self.places[number][1]
            base = calls.frame_base if calls is not None else ()
            self.frames[key] = FrameScope(
                activation, self.memory, bias, base, lambda: self._call(number + 1, callers - 1)
            )
        return self.frames[key]

    def _call(self, caller: int, callers: int) -> Optional[tuple[Mapping[int, Passed], FrameScope]]:
        if callers < NO_CALLERS or caller >= len(self.activations):
            return None
        if callers == NO_CALLERS:
            raise DeepError("a value that depends on more callers")
        return self.readers[caller].passed(self.places[caller][1] + 1), self.frame(caller, callers)


@dataclass(frozen=True)
class GdbCall:
    """One call of a rank's stack: the frame, which of the calls in it (inlined ones first), and GDB's number for it."""

    frame: int
    inner: int
    level: int

    def key(self, walked: GdbStack, callers: int) -> Key:
        """What frames with the same line have in common."""
        return self.inner, self.frame == 0, walked.places[self.frame : self.frame + callers + 1]


@dataclass(frozen=True)
class ShownArgument:
    """One argument as a line shows it. `offset`: its distance from the CFA, if it is that simple."""

    name: str
    parameter: Parameter
    printer: Printer
    offset: Optional[int]
    fixed: str = ""  # what is shown in every rank, if that is so


@dataclass(frozen=True)
class FrameLine:
    """`#LEVEL PC` BEFORE ARGUMENTS BEHIND. Without `shows_pc` there is no PC; `callers` as `GdbStack.frame` has it."""

    shows_pc: bool
    before: str
    arguments: tuple[ShownArgument, ...]
    callers: int
    behind: str


class FrameLines:
    """All patterns that one command has learned."""

    def __init__(self) -> None:
        self.languages = Language()
        self._names = SymbolNames()
        self._lines: dict[Key, Optional[FrameLine]] = {}
        self._deep: set[Key] = set()
        self._printers: dict[tuple[Place, int, str], Printer] = {}

    def knows(self, walked: GdbStack, call: GdbCall) -> bool:
        """Whether GDB has shown such a frame before, be it one that can't be computed."""
        return self._key(walked, call) in self._lines

    def _key(self, walked: GdbStack, call: GdbCall) -> Key:
        key = call.key(walked, CALLERS)
        return call.key(walked, ALL_CALLERS) if key in self._deep else key

    def text(self, walked: GdbStack, call: GdbCall) -> str:
        """The line of a frame; raises `UnsupportedError` if there is no pattern."""
        line = self._lines.get(self._key(walked, call))
        if line is None:
            raise UnsupportedError("there is no pattern")
        pc = f"{walked.activations[call.frame].pc:#018x}" if line.shows_pc else ""
        arguments = arguments_text(line.arguments, walked, call.frame, line.callers) if line.arguments else ""
        return f"{numbered(call.level)}{pc}{line.before}{arguments}{line.behind}"

    def learn(self, walked: GdbStack, call: GdbCall, frame: gdb.Frame, text: str) -> None:
        """Take GDB's own line as the pattern, if it can be computed."""
        frame_line: Optional[FrameLine] = None
        with suppress(*FAILURES):
            shown = tuple(self._shown(walked, call, frame))
            try:
                frame_line = self._line(walked, call, shown, text, CALLERS)
            except DeepError:
                self._deep.add(call.key(walked, CALLERS))
                frame_line = self._line(walked, call, shown, text, ALL_CALLERS)
        self._lines[self._key(walked, call)] = frame_line

    def _line(
        self, walked: GdbStack, call: GdbCall, shown: tuple[ShownArgument, ...], text: str, callers: int
    ) -> FrameLine:
        pc = f"{walked.activations[call.frame].pc:#018x}"
        rest = text.removeprefix(numbered(call.level))
        shows_pc = rest.startswith(pc)
        rest = rest.removeprefix(pc)
        for asked in (callers, NO_CALLERS):  # GDB distrusts some call sites
            arguments = arguments_text(shown, walked, call.frame, asked)
            before, between, behind = rest.rpartition(f" ({arguments})")
            if between and "0x" not in before + behind and behind.startswith((" at ", " from ", "\n")):
                return FrameLine(shows_pc, f"{before} (", shown, asked, f"){behind}")
        raise UnsupportedError("GDB shows it otherwise")

    def _shown(self, walked: GdbStack, call: GdbCall, frame: gdb.Frame) -> Iterator[ShownArgument]:
        calls = walked.calls(call.frame)
        if calls is None:
            return
        for symbol in parameters(frame):
            name = symbol.print_name
            key = (walked.places[call.frame], call.inner, name)
            if key not in self._printers:
                self._printers[key] = Printer(type_of(symbol), language_of(frame), self.languages, self._names)
            parameter = calls.calls[call.inner].parameters.get(name, NOWHERE)
            fixed = fixed_text(frame, name, parameter) if self._printers[key].is_short else ""
            yield ShownArgument(name, parameter, self._printers[key], offset_of(parameter, calls), fixed)


def numbered(level: int) -> str:
    """Return a frame's number as a backtrace begins its line with it."""
    return f"#{level:<3}"


def language_of(frame: Any) -> str:
    """From GDB 13."""
    return str(frame.language())


def type_of(symbol: gdb.Symbol) -> gdb.Type:
    """Return a parameter's type; raises `UnsupportedError` if it has none."""
    if symbol.type is None:
        raise UnsupportedError("a parameter without a type")
    return symbol.type


def offset_of(parameter: Parameter, calls: CallsAt) -> Optional[int]:
    """The distance from the CFA at which an argument lies all the time, as without optimization."""
    steps = parameter.now
    if parameter.entry_register is None and len(steps) == 1 and steps[0].atom == dw.DW_OP_fbreg:
        return signed(steps[0].number) if calls.frame_base == CFA_ALONE else None
    return None


def fixed_text(frame: gdb.Frame, name: str, parameter: Parameter) -> str:
    """What is shown of an aggregate, "" if that may differ: GDB needs the address of some, and says if it has none."""
    if parameter.may_be_nowhere:
        return ""
    if not parameter.now and parameter.constant is None:
        try:
            frame.read_var(name).fetch_lazy()
        except gdb.error as error:
            return f"<error reading variable: {error}>"
    return SHORT


def arguments_text(shown: tuple[ShownArgument, ...], walked: GdbStack, number: int, callers: int) -> str:
    """`n=4, grid=...` of a frame."""
    return ", ".join(
        [f"{shown_argument.name}={value_text(shown_argument, walked, number, callers)}" for shown_argument in shown]
    )


def value_text(shown: ShownArgument, walked: GdbStack, number: int, callers: int) -> str:
    """Return an argument's value as GDB's backtraces show it, or GDB's own words for memory that can't be read."""
    try:
        return shown.fixed or _value_text(shown, walked, number, callers)
    except MemoryUnreadable as error:
        return f"<error reading variable: Cannot access memory at address {error.address:#x}>"


def _value_text(shown: ShownArgument, walked: GdbStack, number: int, callers: int) -> str:
    printer, parameter = shown.printer, shown.parameter
    if printer.is_short:
        raise UnsupportedError("an array that may be unallocated")
    if shown.offset is not None:
        at = (walked.activations[number].cfa + shown.offset) & MASK
        return printer.there(at, walked.frame_memory)
    if parameter.constant is not None:
        return printer.text(parameter.constant[: printer.size], walked.frame_memory)
    frame = walked.frame(number, callers)
    if printer.needs_address:
        found = address(parameter.now, frame)
        if found is None:
            raise UnsupportedError("an object that is not in memory")
        return printer.at(found)
    return two_values_text(shown, walked, frame)


def two_values_text(shown: ShownArgument, walked: GdbStack, frame: FrameScope) -> str:
    """The value now and at the call, as GDB's `print entry-values default` has it."""
    printer, parameter = shown.printer, shown.parameter
    now = value(parameter.now, printer.size, frame)
    entry = entry_value(parameter.entry_register, printer.size, frame)
    text = OPTIMIZED_OUT if now is None else printer.text(now, walked.frame_memory)
    if entry is None:
        return text
    at_entry = f"{shown.name}@entry={printer.text(entry, walked.frame_memory)}"
    return at_entry if now == entry else f"{text}, {at_entry}"
