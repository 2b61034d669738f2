"""Keeps the user's `display` entries while symbols move between ranks, and shows none with another rank's values.

Takes GDB's displays. GDB deletes all of them whenever it removes symbols; they go on as ours then (own_displays.py),
under the same numbers and commands. As it stops, GDB shows its own before the extension can move symbols to the rank
that has stopped, and would show another rank's values: they are disabled while the program runs, and shown after that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Optional

from gdbext.gdb_api import hooks
from gdbext.gdb_api.run_before_users_commands import UsersCommands, show_output
from gdbext.gdb_api.run_commands import DebuggerError, execute
from gdbext.symbols.display_scope import Scope, scope_of
from gdbext.symbols.own_displays import NOT_NOW, Format, OwnDisplay, OwnDisplays, parsed

LISTED = rf"(?m)^(\d+):   ([yn])  (?:(/\S+) )?(.*?)({re.escape(NOT_NOW)})?$"
LISTED_FORM = r"/(\d+)([bhwg])(.)"
CALLING_NOTHING = "with may-call-functions off --"
CHANGES = r"\+\+|--|(?<![=!<>])=(?!=)|[<>]{2}="  # an expression that is not only looked at
LEARN = "maintenance ranklens-learn-displays"


@dataclass(frozen=True)
class Display:
    """One of GDB's displays; `form` is its format such as "/x" or "/rx", "" if it has none.

    `is_here`: its variables are those of the selected frame, or of none.
    """

    number: int
    enabled: bool
    form: str
    expression: str
    is_here: bool


@dataclass(frozen=True)
class Learned:
    """What GDB does not list of a display: whether it shows no pretty-printers, and the block of its variables."""

    is_raw: bool
    scope: Optional[Scope]


class Displays:
    """Those of one GDB. `are_symbols_there`: whether all names of the program mean something at the moment."""

    def __init__(self) -> None:
        self.are_symbols_there: Callable[[], bool] = lambda: False
        self._own: Optional[OwnDisplays] = None
        self._resting: set[int] = set()  # disabled as long as the program runs
        self._rests = False
        self._learned: dict[int, Learned] = {}
        self._newest = 0

    @property
    def are_ours(self) -> bool:
        """Whether GDB has them no longer."""
        return self._own is not None

    def learn(self) -> None:
        """After `display`: what GDB does not list of a new one of the user's."""
        if self._own is not None or UsersCommands.wait:  # amid a stop none is new, and no error may end its commands
            return
        displays = list(listed())
        new = [display for display in displays if display.number > self._newest]
        for display in new:
            self._newest = display.number
            is_raw = not re.search(CHANGES, display.expression) and shows_raw(display, displays)
            self._learned[display.number] = Learned(is_raw, scope_of(display.expression))

    def save(self) -> None:
        """GDB is about to delete them."""
        displays = list(listed()) if self._own is None else []
        if not displays:
            return
        own = OwnDisplays(lambda: self.are_symbols_there())
        newest = max(self._newest, max(display.number for display in displays))
        own.adopt(map(self._as_own, displays), newest)
        execute(f"undisplay {' '.join(str(display.number) for display in displays)}")
        self._own = own
        self._resting.clear()
        self._learned.clear()
        from gdbext.symbols.display_commands import replace_commands  # late: most sessions need none

        replace_commands(own)

    def _as_own(self, display: Display) -> OwnDisplay:
        learned = self._learned.get(display.number)
        if learned is None:  # it was made by a command that the user has hooked
            learned = Learned(False, scope_of(display.expression) if display.is_here else None)
        match = re.fullmatch(LISTED_FORM, display.form)
        form = Format(int(match[1]), match[2], match[3]) if match else parsed(f"{display.form} ")[0]
        enabled = display.enabled or display.number in self._resting
        return OwnDisplay(
            display.number,
            enabled,
            Format(form.count, form.size, form.letter, learned.is_raw),
            display.expression,
            learned.scope,
        )

    def rest(self) -> None:
        """The program goes on; also called each time that it does so by itself before it stops."""
        if self._rests:
            return
        self._rests = True
        if self._own is None:
            self._resting = {display.number for display in listed() if display.enabled}
            switch("disable", self._resting)

    def settle(self, show: bool = False) -> None:
        """The program has stopped, or a command has ended, and symbols are where they belong."""
        rested, self._rests = self._rests, False
        if self._own is not None:
            if show and rested:
                self._own.show()
            return
        if self._resting:
            switch("enable", self._resting & {display.number for display in listed()})
            self._resting.clear()
            if show:
                show_output("display")


def listed() -> Iterator[Display]:
    """Yield the user's `display` entries."""
    table = execute("info display")
    if table.count("\n") == 1:  # it has none, which must not take as long as to compile what finds them
        return
    for number, enabled, form, expression, elsewhere in re.findall(LISTED, table):
        yield Display(int(number), enabled == "y", form, expression, not elsewhere)


def shows_raw(display: Display, displays: list[Display]) -> bool:
    """Whether what a display shows now is its value without pretty-printers; nothing is called for it."""
    try:
        forms = _raw_form(display), display.form
        raw, printed = (execute(f"{CALLING_NOTHING} output{form} {display.expression}") for form in forms)
        return raw != printed and shown_alone(display, displays).endswith(f" = {raw}\n")
    except DebuggerError:  # it is not there now, or is memory, which has no pretty-printers
        return False


def _raw_form(display: Display) -> str:
    return f"/r{display.form[1:]}"


def shown_alone(display: Display, displays: list[Display]) -> str:
    """What GDB shows of one display."""
    others = {other.number for other in displays if other.enabled} - {display.number}
    switch("disable", others)
    try:
        return execute(f"{CALLING_NOTHING} display")
    finally:
        switch("enable", others)


def switch(command: str, numbers: set[int]) -> None:
    """Enable or disable displays."""
    if numbers:
        execute(f"{command} display {' '.join(map(str, sorted(numbers)))}")


def bind(displays: Displays) -> None:
    """Make GDB report new ones, where the user has no such hook."""
    hooks.Called(LEARN, displays.learn)
    hooks.define({"hookpost-display": LEARN})
