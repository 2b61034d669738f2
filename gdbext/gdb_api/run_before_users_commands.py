"""Runs GDB's commands amid a stop, ahead of the user's commands of the breakpoint that was hit.

At the end of each command that Python has it execute, GDB executes what the user has given by `commands` for the
breakpoint where it stands. Amid the handling of the stop it would be too early: they would mean another rank, and one
that goes on, as `continue`, would leave GDB without a prompt for ever. Where a list of commands fails between two of
them, GDB does not come to that end; a command that fails itself would have it drop the user's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import cache

import gdb

END_FUNCTION = "_ranklens_end"
END = f"if ${END_FUNCTION}()\nend"
REASON = "a list of commands of ranklens has ended"
TELLS_CATCHPOINTS = hasattr(gdb, "BP_CATCHPOINT")  # from GDB 13 on
# 2       catchpoint     keep y                      syscall "getppid"
#         catchpoint already hit 1 time
#        continue
CATCHPOINT = r"(?m)^\d+\s+catchpoint\s.*\n(?:\t.*\n)* {8}\S"  # with commands
DELIMITER = "@ranklens@"


class UsersCommands:
    """Whether GDB has stopped for a breakpoint whose commands it is about to execute."""

    wait = False
    _are_catchpoints = False

    @classmethod
    def begin(cls, stopped_at: Iterable[gdb.Breakpoint]) -> None:
        """GDB has stopped at these."""
        with_commands = (hit for hit in stopped_at if hit.is_valid() and hit.commands)
        cls.wait = cls._are_catchpoints or any(True for _ in with_commands)

    @classmethod
    def end(cls) -> None:
        """The stop is handled."""
        cls.wait = False

    @classmethod
    def look(cls) -> None:
        """Before something runs: whether it may stop at commands of which GDB tells nothing at the stop."""
        if not TELLS_CATCHPOINTS:
            cls._are_catchpoints = bool(re.search(CATCHPOINT, output_of("info breakpoints")))


class End(gdb.Function):
    """What a list of commands fails at: an error in one of the commands would have GDB drop the user's."""

    def __init__(self) -> None:
        super().__init__(END_FUNCTION)

    def invoke(self, *args: gdb.Value) -> gdb.Value:
        """Fail."""
        raise gdb.GdbError(REASON)


@cache
def end_function() -> End:
    """Register the function with GDB when it is first needed: GDB lists it with the user's."""
    return End()


def show_output(command: str) -> None:
    """Run a command whose output is for the user."""
    if UsersCommands.wait:
        _to_the_end(lambda: gdb.execute(f"{command}\n{END}"))
    else:
        gdb.execute(command)


def output_of(command: str) -> str:
    """What a command prints.

    GDB drops what it has captured of a list that fails: the command writes to a file without a name.
    """
    if not UsersCommands.wait:
        return gdb.execute(command, from_tty=False, to_string=True) or ""
    descriptor = os.memfd_create("ranklens", 0)  # the shell inherits it
    try:
        into_file = f"pipe -d {DELIMITER} -- {command} {DELIMITER} cat >/proc/self/fd/{descriptor}"
        _to_the_end(lambda: gdb.execute(f"{into_file}\n{END}", to_string=True))
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "surrogateescape")
    finally:
        os.close(descriptor)


def _to_the_end(run: Callable[[], object]) -> None:
    end_function()
    try:
        run()
    except gdb.error as error:
        if str(error) != REASON:
            raise
