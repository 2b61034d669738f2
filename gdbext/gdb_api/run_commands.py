"""Runs GDB's own commands without their output reaching the user, and turns errors into sentences.

Takes commands as text; gives their output. GDB's users never see a traceback of ours, unless they ask by
`set python print-stack full`.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Optional

import gdb

from gdbext.gdb_api.run_before_users_commands import output_of
from pieglobalsfind.errors import RanklensError


class DebuggerError(RanklensError):
    """GDB refused something, in GDB's own words."""


@contextmanager
def gdb_errors() -> Iterator[None]:
    """GDB's errors inside become `DebuggerError`."""
    try:
        yield
    except gdb.error as error:  # gdb.MemoryError is one
        raise DebuggerError(str(error).strip().rstrip(".") or "GDB refused without a reason") from error
    except UnicodeEncodeError as error:
        raise DebuggerError("GDB's Python accepts only names in UTF-8") from error


def execute(command: str) -> str:
    """The output of a command; raises `DebuggerError`."""
    with gdb_errors():
        return told(lambda: output_of(command)) or ""


class Silent:
    """What `silently` calls next."""

    call: Callable[[], None]


def silently(call: Callable[[], None]) -> None:
    """Call what GDB has no command for, without its output: GDB keeps that of commands alone."""
    errors: list[Exception] = []

    def caught() -> None:
        try:
            call()
        except Exception as error:  # leaves as it is, not as GDB's traceback
            errors.append(error)

    Silent.call = caught
    execute(f"python __import__('sys').modules[{__name__!r}].Silent.call()")  # users' names stay as they are
    with gdb_errors():
        for error in errors:
            raise error


def told(ask: Callable[[], Optional[str]]) -> Optional[str]:
    """What GDB answers in text; where that is not UTF-8, as names of files may be, as `os.fsdecode` gives it.

    Its Python raises an error then, which has the bytes.
    """
    try:
        return ask()
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "surrogateescape")


def quoted(path: str) -> str:
    """A file's path as one word of a GDB command."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the end of what must be done as a whole; GDB handles it in the thread that runs Python."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Program:
    """Whether GDB has, or has had, anything to debug (hooks.py)."""

    is_known = False


def set_convenience(name: str, value: int) -> None:
    """`gdb.set_convenience_variable`, which asks for registers: of a process that was just killed there are none.

    A GDB without a program lists no variables of ours among its users'.
    """
    if Program.is_known:
        with suppress(gdb.error):
            gdb.set_convenience_variable(name, value)


@contextmanager
def untraced() -> Iterator[None]:
    """`set trace-commands on` shows what users type, and not what our commands have GDB execute among their output."""
    if not gdb.parameter("trace-commands"):
        yield
        return
    gdb.execute("set trace-commands off", to_string=True)
    try:
        yield
    finally:
        gdb.execute("set trace-commands on")


@contextmanager
def sentences() -> Iterator[None]:
    """For commands: errors inside leave as `gdb.GdbError`, which GDB prints as one sentence."""
    try:
        yield
    except gdb.GdbError:
        raise
    except Exception as error:
        raise gdb.GdbError(sentence_of(error)) from error


@contextmanager
def warnings(consequence: str) -> Iterator[None]:
    """For event handlers: errors inside become a warning, "CONSEQUENCE: why"."""
    try:
        yield
    except Exception as error:
        gdb.write(f"warning: {consequence}: {sentence_of(error)}\n", gdb.STDERR)


def sentence_of(error: Exception) -> str:
    """What the user reads; a defect of ours is called one, and how to see where."""
    from pieglobalsfind.shell.escape import escape  # late, as is all that sourcing the extension does not need

    if isinstance(error, (RanklensError, gdb.error)):
        return escape(str(error))
    if gdb.parameter("python print-stack") == "full":
        gdb.write("".join(traceback.format_exception(type(error), error, error.__traceback__)), gdb.STDERR)
    return (
        f"ranklens failed ({type(error).__name__}: {escape(str(error))}); GDB itself is unharmed, "
        "`set python print-stack full` and the same again show where"
    )
