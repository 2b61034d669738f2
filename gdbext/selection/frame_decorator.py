"""Makes frames in filtered backtraces look as they do in GDB's backtraces without filters.

GDB prints a backtrace by other code when a frame filter is at work: functions get their parameters' types, and an
argument that can't be read ends the line in a Python error. Takes frame decorators; has GDB print each frame in its
usual way, and passes that text on. Programs that drive GDB get variables, with their types.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, Optional, Union

import gdb
from gdb.FrameDecorator import FrameDecorator

from gdbext.gdb_api import frame_description, hooks
from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.language import is_automatic
from gdbext.gdb_api.typed_command import typed_option

SHORT = "..."
NAMES = "bt|backtrace|where"

HOOKS = {
    "hook-backtrace": "maintenance ranklens-learn-option",
    "hookpost-backtrace": "maintenance ranklens-forget-option",
}


class TypedAmount:
    """The value of `bt -frame-arguments` that the user has typed: GDB does not let filters know it."""

    value = ""

    @classmethod
    def learn(cls) -> None:
        """Before a backtrace."""
        cls.value = typed_option(NAMES, r"-frame-a[a-z-]*")

    @classmethod
    def forget(cls) -> None:
        """After it."""
        cls.value = ""


class RankFrame(FrameDecorator):
    """A frame of a rank in a backtrace."""

    def function(self) -> Any:
        """Without the parameters' types.

        Where a function has no name `super` gives the pc, for which GDB takes any symbol there, also the next one.
        """
        if is_special(self.inferior_frame()):
            return super().function()
        name = self.inferior_frame().name() or super().function()
        return name if isinstance(name, str) else "??"

    def address(self) -> Any:
        """GDB shows no address of frames without a function."""
        return None if is_special(self.inferior_frame()) else super().address()

    def filename(self) -> Optional[str]:
        """GDB hands Python no name that is not UTF-8, and ends the backtrace."""
        if is_special(self.inferior_frame()):
            return None
        try:
            name = super().filename()
        except UnicodeDecodeError as error:
            return error.object.decode("utf-8", "backslashreplace")
        return name if isinstance(name, str) else None

    def line(self) -> Optional[int]:
        """For the same reason: GDB's own asks for the name first."""
        try:
            line = super().line()
        except UnicodeDecodeError:
            line = self.inferior_frame().find_sal().line
        return int(line) if line else None

    def frame_args(self) -> Any:
        """Return the arguments for GDB's own printing; MI gets GDB's values."""
        if speaks_mi():
            return super().frame_args()
        return list(argument_pieces(self.inferior_frame()))

    def frame_locals(self) -> Any:
        """Return the locals for GDB's own printing; MI gets GDB's values."""
        if speaks_mi():
            return super().frame_locals()
        return list(pieces(frame_description.locals_text(self.inferior_frame()).replace("\n", "\n        "), " = "))


def is_special(gdb_frame: gdb.Frame) -> bool:
    """Whether it stands for a signal's delivery, or for a call that GDB has made."""
    return gdb_frame.type() in (gdb.SIGTRAMP_FRAME, gdb.DUMMY_FRAME)


def argument_pieces(gdb_frame: gdb.Frame) -> Iterator[Piece]:
    """One piece for each argument, of which GDB prints as much as its settings and options ask for."""
    text = frame_description.arguments_text(gdb_frame, TypedAmount.value)
    symbols = {symbol.print_name: symbol for symbol in (frame_description.parameters(gdb_frame) if text else ())}
    if text == SHORT:  # by `set print frame-arguments presence`
        yield from (shortened(gdb_frame, symbol) for symbol in symbols.values())
        return
    starts = [0]
    for name in [*symbols][1:]:
        match = re.compile(rf", {re.escape(name)}(?:@entry)?=").search(text, starts[-1] + 1)
        starts += [] if match is None else [match.start()]
    for start, end in zip(starts, [*starts[1:], len(text)]):
        name, found_value, value = text[start:end].removeprefix(", ").partition("=")
        if value == SHORT and name in symbols:
            yield shortened(gdb_frame, symbols[name])
        elif found_value:
            yield StyledPiece(name, value)


def shortened(gdb_frame: gdb.Frame, symbol: gdb.Symbol) -> Piece:
    """An argument that GDB prints by itself, as long as it was asked to; "..." where it would print another value.

    GDB takes from the selected frame what depends on one, as a Fortran string's length, and how the language writes it.
    """
    if speaks_alike(gdb_frame) and not getattr(symbol.type, "dynamic", True):
        return GdbsPiece(symbol)
    return StyledPiece(symbol.print_name, SHORT)


def speaks_alike(spoken: Any) -> bool:
    """Whether GDB prints in the frame's language while another one is selected.

    GDB 12 does not tell a frame's language: there it has to be the same source file.
    """
    selected: Any = gdb.selected_frame()
    if not is_automatic():
        return False
    if hasattr(spoken, "language"):
        return bool(spoken.language() == selected.language())
    files = [each.find_sal().symtab for each in (spoken, selected)]
    return None not in files and files[0].fullname() == files[1].fullname()


def pieces(text: str, between: str) -> Iterator[StyledPiece]:
    """One piece for the whole text, if GDB can be made to print it: it prints NAME, `between`, VALUE."""
    name, separator, value = text.partition(between)
    if separator:
        yield StyledPiece(name, value)


class GdbsPiece:
    """A variable that GDB reads and prints by itself, as long as it was asked to."""

    def __init__(self, symbol: gdb.Symbol) -> None:
        self._symbol = symbol

    def symbol(self) -> gdb.Symbol:
        """Return which variable it is."""
        return self._symbol

    def value(self) -> None:
        """Return no value: GDB reads it."""


class StyledPiece:
    """What GDB takes for a variable: all that follows the first name is its value."""

    def __init__(self, name: str, value: str) -> None:
        self._name = name
        self._value = value

    def symbol(self) -> str:
        """Return the name that GDB prints."""
        return self._name

    def value(self) -> gdb.Value:
        """Return the text that stands for the value."""
        return text_value(self._value)


Piece = Union[GdbsPiece, StyledPiece]


def text_value(text: str) -> gdb.Value:
    """A value that GDB prints as `text`: GDB takes values here, and only scalars are not shortened to "..."."""
    number = next(TextPrinter.numbers)
    TextPrinter.texts[number] = text
    return gdb.Value(number)


class TextPrinter:
    """The pretty-printer of such values; each is printed once."""

    numbers = itertools.count(0x52414E4B << 24)
    texts: dict[int, str] = {}  # noqa: RUF012 - what was made and not yet printed

    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        """Return the text that stands for the value."""
        return self._text


def ranklens_texts(value: gdb.Value) -> Optional[TextPrinter]:
    """The lookup function; outside of a backtrace there are no texts, and it costs nothing."""
    if not TextPrinter.texts or value.address is not None or value.type.code != gdb.TYPE_CODE_INT:
        return None
    text = TextPrinter.texts.pop(int(value), None)
    return None if text is None else TextPrinter(text)


def bind() -> None:
    """Let GDB print text values as they are, and learn how much of arguments is asked for."""
    gdb.pretty_printers.insert(0, ranklens_texts)
    hooks.Called(HOOKS["hook-backtrace"], TypedAmount.learn)
    hooks.Called(HOOKS["hookpost-backtrace"], TypedAmount.forget)
    hooks.define(HOOKS)
