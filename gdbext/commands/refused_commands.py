"""Commands that make a rank go on, refused while the selected rank is suspended: only the runtime can make it go on.

Takes GDB's hooks (gdb_api/hooks.py). Calls inside expressions GDB itself refuses (selection.py), in its own words and
before Python could say a word; those name a setting, and a hook of that setting explains it here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import gdb

from gdbext.gdb_api import hooks
from gdbext.gdb_api.momentary_breakpoints import InlineFinish
from gdbext.gdb_api.run_commands import warnings
from gdbext.gdb_api.target import is_core
from gdbext.selection.debugger import GdbDebugger
from gdbext.selection.selection import INSTEAD, MAY_CALL, NO_CALLS
from pieglobalsfind.errors import RanklensError

GO_ON = ("step", "stepi", "next", "nexti", "finish", "until", "advance", "return", "jump")
CALL = ("hook-call", "compile hook-code", "compile hook-file", "compile hook-print")
CHECK, CHECK_CALL, CHECK_SETTING = (
    "maintenance ranklens-check-running",
    "maintenance ranklens-check-call",
    "maintenance ranklens-check-may-call",
)
# AMPI's manual tells its users to `call pieglobalsfind($rip)`.
OWN_COMMAND = "the command `pieglobalsfind ADDRESS` reports which rank owns an address, and what is there"
BESIDES = f"; `print EXPR` shows what needs no call, and {OWN_COMMAND}"
SETTING_HOOKS = {f"set hookpost-{MAY_CALL}": CHECK_SETTING, f"show hookpost-{MAY_CALL}": CHECK_SETTING}


class CheckRunning(gdb.Command):
    """Refuse a command that needs the selected rank to run; `before` is called if it does."""

    def __init__(self, name: str, debugger: GdbDebugger, before: Callable[[], None], besides: str) -> None:
        super().__init__(name, gdb.COMMAND_MAINTENANCE)
        self._debugger = debugger
        self._before = before
        self._besides = besides

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Refuse to run a rank that does not run, with the reason."""
        selection = self._debugger.selection
        if gdb.selected_thread() is None:
            return  # GDB itself says what is lacking
        if selection.rank is None and argument == "call" and is_core():
            self._report_own_command()
            return
        if selection.rank is None or not selection.is_suspended:
            with warnings("the rank may leave this process before the step ends"):
                self._before()
                if argument == "finish":
                    InlineFinish.begin()
            return
        if is_core():
            raise gdb.GdbError(f"`{argument}` needs a rank that runs, and nothing runs in a core file{self._besides}")
        from pieglobalsfind.debugger.wording import needs_running

        rank = self._debugger.job().shown(selection.rank)
        raise gdb.GdbError(needs_running(argument, rank, "rank tbreak") + self._besides)

    def _report_own_command(self) -> None:
        """Before GDB refuses to call a function in a core file with ranks, in words that do not help."""
        with suppress(RanklensError):
            self._debugger.job()
            gdb.write(f"No function can be called in a core file; {OWN_COMMAND}.\n")


def keep_calls_off(debugger: GdbDebugger) -> None:
    """After `set` and `show may-call-functions`: it is off while a suspended rank is selected, which we say."""
    if not debugger.selection.forbids_calls:
        return
    if gdb.parameter(MAY_CALL):
        gdb.execute(f"set {MAY_CALL} off", to_string=True)
    gdb.write(f"{NO_CALLS.capitalize()}, and the selected one is suspended: {INSTEAD}.\n")


def bind(debugger: GdbDebugger, before_step: Callable[[], None]) -> None:
    """`before_step` is called before a command that makes a rank go on."""
    CheckRunning(CHECK, debugger, before_step, "")
    CheckRunning(CHECK_CALL, debugger, lambda: None, BESIDES)
    hooks.Called(CHECK_SETTING, lambda: keep_calls_off(debugger))
    hooks.define(
        *({f"hook-{command}": f"{CHECK} {command}"} for command in GO_ON),
        *({hook: f"{CHECK_CALL} {hook.replace('hook-', '')}"} for hook in CALL),
        *({hook: command} for hook, command in SETTING_HOOKS.items()),
    )
