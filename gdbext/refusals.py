"""Commands that make a rank go on, refused while the selected rank is suspended: only the runtime can make it go on.

Takes GDB's hooks (hooks.py).
"""

from __future__ import annotations

from collections.abc import Callable

import gdb

from gdbext import hooks
from gdbext.face import GdbFace
from gdbext.quiet import warnings

COMMANDS = ("step", "stepi", "next", "nexti", "finish", "until", "advance", "return", "jump")
CHECK = "ranklens-check-running"


class CheckRunning(gdb.Command):
    """Refuse a command that needs the selected rank to run."""

    def __init__(self, face: GdbFace, before_step: Callable[[], None]) -> None:
        super().__init__(CHECK, gdb.COMMAND_MAINTENANCE)
        self._face = face
        self._before_step = before_step

    def invoke(self, argument: str, from_tty: bool) -> None:
        selection = self._face.selection
        if selection.rank is None or not selection.is_suspended:
            with warnings("a rank that leaves may take the step's end along"):
                self._before_step()
            return
        from pieglobalsfind.wording import state_text

        rank = self._face.job().shown(selection.rank)
        raise gdb.GdbError(
            f"`{argument}` needs a rank that runs, and rank {rank.rank} is {state_text(rank)}: set a breakpoint where "
            f"it goes on, as by `rank tbreak LOCATION {rank.rank}`, and `continue`"
        )


def bind(face: GdbFace, before_step: Callable[[], None]) -> None:
    """`before_step` is called before a command that makes a rank go on."""
    CheckRunning(face, before_step)
    for command in COMMANDS:
        hooks.define({f"hook-{command}": f"{CHECK} {command}"})
