"""What `display` shows at every stop, kept while symbols move from rank to rank, and never shown of the wrong rank.

Takes GDB's displays. GDB deletes all of them whenever it forgets symbols; they are made again, with new numbers, where
their expressions mean something. As it stops, GDB shows them before the extension can move symbols to the rank that has
stopped, and would show another rank's values: they are disabled while the program runs, and shown once that is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import gdb

from gdbext.gdb_api import hooks
from gdbext.gdb_api.run_gdb import DebuggerError, execute
from gdbext.gdb_api.users_commands import UsersCommands, show_output

NOT_NOW = " (cannot be evaluated in the current context)"  # GDB's words of a variable of another function
LISTED = rf"(?m)^(\d+):   ([yn])  (?:(/\S+) )?(.*?)(?:{re.escape(NOT_NOW)})?$"
CALLING_NOTHING = "with may-call-functions off --"
CHANGES = r"\+\+|--|(?<![=!<>])=(?!=)|[<>]{2}="  # an expression that is not only looked at
HOOKS = {
    "hookpost-display": "maintenance ranklens-learn-displays",
    "info hookpost-display": "maintenance ranklens-tell-displays",
    "hookpost-undisplay": "maintenance ranklens-forget-displays",
    "delete hookpost-display": "maintenance ranklens-forget-displays",
}


@dataclass(frozen=True)
class Display:
    """One of GDB's displays; `form` is its format such as "/x" or "/rx", "" if it has none."""

    number: int
    enabled: bool
    form: str
    expression: str


class Displays:
    """Those of one GDB."""

    def __init__(self) -> None:
        self._lost: list[Display] = []
        self._first: dict[int, int] = {}  # the number that each had at first, by which GDB orders what it shows
        self._resting: set[int] = set()  # disabled as long as the program runs
        self._rests = False
        self._raw: set[int] = set()  # without pretty-printers, which GDB does not list
        self._newest = 0
        self._makes = False

    def learn(self) -> None:
        """After `display`: whether a new one of the user's is raw."""
        if self._makes:
            return
        displays = list(listed())
        new = [display for display in displays if display.number > self._newest]
        self._newest = max((display.number for display in displays), default=0)
        for display in new:
            if not re.search(CHANGES, display.expression) and shows_raw(display, displays):
                self._raw.add(display.number)

    def save(self) -> None:
        """GDB is about to delete them."""
        for display in listed():
            enabled = display.enabled or display.number in self._resting
            form = _raw_form(display) if display.number in self._raw else display.form
            self._lost.append(
                Display(self._first.pop(display.number, display.number), enabled, form, display.expression)
            )
        self._lost.sort(key=lambda display: display.number)
        self._resting.clear()
        self._raw.clear()

    def rest(self) -> None:
        """The program goes on; also called each time that it does so by itself before it stops."""
        if self._rests:
            return
        self._rests = True
        self._resting = {display.number for display in listed() if display.enabled}
        switch("disable", self._resting)

    def settle(self, show: bool = False) -> None:
        """The program has stopped, or a command has ended, and symbols are where they belong."""
        if not self._resting and not self._lost:
            self._rests = False
            return
        switch("enable", self._resting & {display.number for display in listed()})
        self._resting.clear()
        lost, self._lost = self._lost, []
        self._makes = True
        for display in lost:
            try:
                check_names(display.expression)
                execute(f"display{display.form} {display.expression}")
            except (DebuggerError, gdb.error):  # its variables are not there now
                self._lost.append(display)
                continue
            made = self._newest = max(made.number for made in listed())
            self._first[made] = display.number
            if display.form.startswith("/r"):
                self._raw.add(made)
            if not display.enabled:
                switch("disable", {made})
        if show and (self._rests or lost):
            show_output("display")
        self._makes = False
        self._rests = False

    def tell(self) -> None:
        """Behind `info display`: those that GDB does not have at the moment."""
        for display in self._lost:
            enabled = "y" if display.enabled else "n"
            gdb.write(f"     {enabled}  {display.form}{' ' * bool(display.form)}{display.expression}{NOT_NOW}\n")

    def forget(self) -> None:
        """After the user has deleted displays: if all, then those too that GDB does not have at the moment."""
        if not any(listed()):
            self._lost.clear()


def listed() -> Iterator[Display]:
    """Yield the user's `display` entries."""
    table = execute("info display")
    if table.count("\n") == 1:  # it has none, which must not take as long as to compile what finds them
        return
    for number, enabled, form, expression in re.findall(LISTED, table):
        yield Display(int(number), enabled == "y", form, expression)


def shows_raw(display: Display, displays: list[Display]) -> bool:
    """Whether what a display shows now is its value without pretty-printers; nothing is called for it."""
    try:
        forms = _raw_form(display), display.form
        raw, printed = (execute(f"{CALLING_NOTHING} output{form} {display.expression}") for form in forms)
        return raw != printed and shown_alone(display, displays).endswith(f" = {raw}\n")
    except DebuggerError:  # it is not there now, or is memory, which has no pretty-printers
        return False


def check_names(expression: str) -> None:
    """Raise `gdb.error` for what GDB can't display here, if it would drop the user's commands because of the error."""
    if UsersCommands.wait:
        gdb.parse_and_eval(f"sizeof ({expression})")


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
    """Make GDB report them, where the user has no such hooks."""
    hooks.Called(HOOKS["hookpost-display"], displays.learn)
    hooks.Called(HOOKS["info hookpost-display"], displays.tell)
    hooks.Called(HOOKS["hookpost-undisplay"], displays.forget)
    hooks.define(*({hook: command} for hook, command in HOOKS.items()))
