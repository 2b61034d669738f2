"""Keeps the user's `display` entries while symbols move between ranks, and shows none with another rank's values.

Takes expressions and formats; shows their values in the selected frame, in GDB's form. GDB deletes all displays when it
removes symbols, numbers new ones from where it was, and shows them before the extension can move symbols to the rank
that has stopped. So these take GDB's place, and its numbers, as soon as GDB has symbols of a rank.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

import gdb

from gdbext.displays.scope import Scope, is_selected, scope_of
from gdbext.gdb_api.front_end import is_batch, speaks_mi
from gdbext.gdb_api.run_before_users_commands import UsersCommands, show_output
from gdbext.gdb_api.run_commands import execute, sentences
from gdbext.gdb_api.typed_command import numbers

NOT_NOW = " (cannot be evaluated in the current context)"  # GDB's words of a variable of another function
FORM = r"/(-?\d+)?([a-zA-Z]*)\s*"
SIZES, MEMORY = "bhwg", "is"  # letters: sizes of units of memory; formats that are of memory anyway
LISTED = rf"(?m)^(\d+):   ([yn])  (?:(/\S+) )?(.*?)({re.escape(NOT_NOW)})?$"
LISTED_MEMORY = r"/(\d+)([bhwg])(.)"
NUMBERS = r"\d+(?:-\d+)?|\$\w+"

Act = Callable[[str, bool], None]
HINT = "(y or n) "


def query(question: str) -> bool:
    """Ask as GDB does before it deletes something, which its Python has no command for; whether the user says yes.

    The answer is yes where GDB does not ask, or no user is there to answer.
    """
    if not gdb.parameter("confirm"):
        return True
    if is_batch() or speaks_mi() or not sys.stdin.isatty():
        gdb.write(f"{question}{HINT}[answered Y; input not from terminal]\n")
        return True
    while True:
        try:
            answer = input(question + HINT).strip().lower()
        except EOFError:
            return True
        if answer[:1] in ("y", "n"):
            return answer[0] == "y"
        gdb.write("Please answer y or n.\n")


@dataclass(frozen=True)
class Format:
    """What stands after the slash: a number of units, their size ("": not memory), the letter, and `r`."""

    count: int = 1
    size: str = ""
    letter: str = ""
    is_raw: bool = False

    @property
    def listed(self) -> str:
        """As `info display` has it."""
        if self.size:
            return f"/{self.count}{self.size}{self.letter} "
        return f"/{self.letter} " if self.letter else ""


def parsed(text: str) -> tuple[Format, str]:
    """What `display` is given, as format and expression."""
    match = re.match(FORM, text)
    if match is None:
        return Format(), text
    count, size, letter, is_raw = int(match[1] or 1), "", "", False
    for sign in match[2]:
        if sign in SIZES:
            size = sign
        elif sign == "r":
            is_raw = True
        else:
            letter = sign
    if size and not letter:
        letter = "x"
    if letter and letter in MEMORY:
        size = "b"
    return Format(count, size, letter, is_raw), text[match.end() :]


@dataclass
class Display:
    """One of them; `scope` is the block of its variables, None if they are of none."""

    number: int
    enabled: bool
    form: Format
    expression: str
    scope: Optional[Scope]

    def show(self) -> None:
        """Print it as GDB does."""
        if self.form.size:
            self._show_memory()
            return
        letter = f"/{self.form.letter} " if self.form.letter else ""
        gdb.write(f"{self.number}: {letter}{self.expression} = ")
        form = "r" * self.form.is_raw + self.form.letter
        gdb.flush()
        try:
            show_output(f"output{f'/{form}' if form else ''} {self.expression}")
        except gdb.error as error:
            gdb.write(f"<error: {error}>")
        gdb.write("\n")

    def _show_memory(self) -> None:
        count = "" if self.form.count == 1 else str(self.form.count)
        size = "" if self.form.letter in MEMORY else self.form.size
        end = "\n" if count or self.form.letter == "i" else "  "
        gdb.write(f"{self.number}: x/{count}{self.form.letter}{size} {self.expression}{end}")
        gdb.flush()
        try:
            show_output(f"x/{count}{self.form.letter}{size} {self.expression}")
        except gdb.error as error:
            gdb.write(f"<error: {error}>\n")

    def row(self) -> str:
        """Its line of `info display`."""
        elsewhere = NOT_NOW if self.scope is not None and not is_selected(self.scope) else ""
        return f"{self.number}:   {'y' if self.enabled else 'n'}  {self.form.listed}{self.expression}{elsewhere}\n"


def check_names(expression: str) -> None:
    """Raise `gdb.error` for what GDB can't display here.

    Amid a stop GDB would drop the user's commands because of a command's error.
    """
    if UsersCommands.wait:
        gdb.parse_and_eval(f"sizeof ({expression})")
    else:
        gdb.execute(f"whatis {expression}", to_string=True)


def listed() -> Iterator[Display]:
    """Yield GDB's own displays. GDB does not list whether one is raw, and of a block only whether it is selected."""
    for number, enabled, form, expression, elsewhere in re.findall(LISTED, execute("info display")):
        memory = re.fullmatch(LISTED_MEMORY, form)
        format = Format(int(memory[1]), memory[2], memory[3]) if memory else parsed(f"{form} ")[0]
        scope = None if elsewhere else scope_of(expression)
        yield Display(int(number), enabled == "y", format, expression, scope)


class Displays:
    """All of them, in the order in which they were made.

    `are_symbols_there`: whether all names of the program mean something at the moment, so that a missing one is gone.
    """

    def __init__(self) -> None:
        self.are_symbols_there: Callable[[], bool] = lambda: False
        self._are_ours = False
        self._displays: list[Display] = []
        self._newest = 0

    def take_over(self) -> None:
        """Go on with GDB's displays, before it removes symbols or has those of a rank."""
        if self._are_ours:
            return
        self._are_ours = True
        self._displays = list(listed())
        for display in self._displays:
            execute(f"undisplay {display.number}")
            self._newest = display.number
        replace_commands(self)

    def make(self, text: str, shows: bool) -> None:
        """`display TEXT`; raises `gdb.error` if it has no meaning here."""
        form, expression = parsed(text)
        check_names(expression)
        self._newest += 1
        display = Display(self._newest, True, form, expression, scope_of(expression))
        self._displays.append(display)
        if shows:
            display.show()

    def show(self) -> None:
        """Print all that mean something in the selected frame."""
        for display in list(self._displays):
            if display.enabled and (display.scope is None or is_selected(display.scope)) and self._is_known(display):
                display.show()

    def _is_known(self, display: Display) -> bool:
        """Whether its names mean something; it is disabled, as by GDB, if they have gone."""
        try:
            check_names(display.expression)
        except gdb.error as error:
            if self.are_symbols_there():
                display.enabled = False
                gdb.write(f'warning: Unable to display "{display.expression}": {error}\n', gdb.STDERR)
            return False
        return True

    def tell(self) -> None:
        """`info display`."""
        if not self._displays:
            gdb.write("There are no auto-display expressions now.\n")
            return
        gdb.write("Auto-display expressions now in effect:\nNum Enb Expression\n")
        for display in self._displays:
            gdb.write(display.row())

    def delete(self, text: str) -> None:
        """`undisplay NUMBERS`, or all of them."""
        gone = list(self._named(text)) if text else self._displays
        self._displays = [display for display in self._displays if display not in gone]

    def switch(self, text: str, enabled: bool) -> None:
        """`enable display` or `disable display` with numbers, or for all."""
        for display in self._named(text) if text else self._displays:
            display.enabled = enabled

    def _named(self, text: str) -> Iterator[Display]:
        by_number = {display.number: display for display in self._displays}
        for word in text.split():
            span = range(0)
            if re.fullmatch(NUMBERS, word):
                with suppress(gdb.error):
                    span = numbers(word)
            if not span or 0 in span:
                gdb.write(f"warning: bad display number at or near '{word}'\n", gdb.STDERR)
                continue
            for number in span:
                if number in by_number:
                    yield by_number[number]
                else:
                    gdb.write(f"No display number {number}.\n")


class DisplayCommand(gdb.Command):
    """`display`, or one of the commands about displays, in place of GDB's."""

    def __init__(self, name: str, completion: int, act: Act) -> None:
        super().__init__(name, gdb.COMMAND_DATA, completion)
        self._act = act

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Do what GDB's command of that name does."""
        with sentences():
            try:
                self._act(argument.strip(), from_tty)
            except gdb.error as error:
                raise gdb.GdbError(str(error)) from None  # in GDB's own words, to the full stop
        self.dont_repeat()


def replace_commands(displays: Displays) -> None:
    """Have GDB call ours instead of its own, whose help stays."""

    def display(text: str, from_tty: bool) -> None:
        if text:
            displays.make(text, from_tty)
        else:
            displays.show()

    def undisplay(text: str, from_tty: bool) -> None:
        if text or query("Delete all auto-display expressions? "):
            displays.delete(text)

    acts: dict[str, tuple[int, Act]] = {
        "display": (gdb.COMPLETE_EXPRESSION, display),
        "undisplay": (gdb.COMPLETE_NONE, undisplay),
        "delete display": (gdb.COMPLETE_NONE, undisplay),
        "enable display": (gdb.COMPLETE_NONE, lambda text, _: displays.switch(text, True)),
        "disable display": (gdb.COMPLETE_NONE, lambda text, _: displays.switch(text, False)),
        "info display": (gdb.COMPLETE_NONE, lambda text, _: displays.tell()),
    }
    for name, (completion, act) in acts.items():
        documented = type("Documented", (DisplayCommand,), {"__doc__": execute(f"help {name}").rstrip("\n")})
        documented(name, completion, act)
