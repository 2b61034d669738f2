"""LLDB as a `Debugger`: what the shared commands may ask of a debugger, answered by LLDB.

Takes a debugger's selected process; which rank is selected follows from LLDB's own selected thread. Never prints, and
never catches what commands should report.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Optional, Union

import lldb

from lldbext.lldb_api import frame_description, value_text
from lldbext.lldb_api.reread_class_values import as_declared, may_lose_members
from lldbext.lldb_api.run_commands import DebuggerError, bare, execute, version
from lldbext.lldb_api.target import StoppedProcess, open_process
from lldbext.lldb_api.variable_paths import is_found, variable_at_path
from lldbext.lldb_api.wait_for_printing import wait_for_printing
from lldbext.selection.lost_frames import described, hidden
from lldbext.selection.selection import Selection, pc_of
from lldbext.selection.session import SESSIONS, Session
from lldbext.values.many_ranks import ManyRanks
from pieglobalsfind.debugger.declare import ExpressionValue
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.session.job_view import JobView, ViewedProcess
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import location_text, user_frame
from pieglobalsfind.session.suspended import from_registers, moment_of
from pieglobalsfind.stacks.frame import Backtrace, Frame
from pieglobalsfind.stacks.unwind import Activation
from pieglobalsfind.target import Target

_REGISTER = re.compile(r"\$[a-z][a-z0-9]*")
_NAME = re.compile(r"(?:\w+::)*[A-Za-z_]\w*")
_UNDECLARED = re.compile(r"use of undeclared identifier '([^']*)'")


class LldbDebugger:
    """The one object behind every command of a debugger."""

    def __init__(self, debugger: Any) -> None:
        self.sb_debugger = debugger

    @property
    def width(self) -> int:
        """Return the terminal's width in columns, 0 without a terminal."""
        return int(self.sb_debugger.GetTerminalWidth()) if os.isatty(1) else 0

    def session(self) -> Session:
        """Of the selected process; raises `TargetError` if there is none."""
        process = self.sb_debugger.GetSelectedTarget().GetProcess()
        if not process.IsValid():
            raise TargetError(
                "there is no process and no core file", "run the program, attach to it, or open a core file"
            )
        if process.GetState() == lldb.eStateRunning:
            raise TargetError("the process is running", "stop it first: process interrupt")
        return SESSIONS.of(process)

    def be_current(self) -> None:
        """LLDB has all ranks in its list, also where it has just attached and asked for none."""
        with suppress(TargetError, NotVirtualizedError):
            session = self.session()
            wait_for_printing(self.sb_debugger)
            session.keep_frame()
            if not session.is_listed(session.moment()):
                session.list_threads()

    def check_is_alive(self) -> None:
        """Raises `TargetEndedError` if the process has been killed that LLDB takes to be stopped."""
        process = None
        with suppress(TargetError, NotVirtualizedError):
            process = self.moment().target
        if isinstance(process, StoppedProcess):
            process.check_is_alive()

    def selection(self) -> Selection:
        """Return the selected rank of the process."""
        return Selection(self.session())

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        """LLDB has no place for it in a terminal of its own."""
        return iter(numbers)

    @property
    def folds_runtime(self) -> bool:
        """Always: LLDB's own `bt` shows all frames."""
        return True

    def moment(self) -> ProcessView:
        """Return the process between two stops."""
        return self.session().moment()

    def target(self) -> Target:
        """Return the process as a target."""
        return open_process(self.session().process)

    def enter(self, registers: Optional[Mapping[int, int]], reason: str) -> Backtrace:
        """LLDB's own commands go on meaning the selected thread: it has threads for ranks alone."""
        if registers is None:
            return Backtrace((), "")
        return from_registers(moment_of(self.target()), registers)

    def job(self) -> JobView:
        """LLDB has one process in a target."""
        return JobView((ViewedProcess(self.moment()),))

    @property
    def selected(self) -> Optional[int]:
        """Return the rank that the user has selected, or None."""
        return self.selection().rank

    @property
    def reason(self) -> str:
        """Return why that rank is selected."""
        return self.selection().reason

    def select(self, rank: Optional[int]) -> None:
        """Select a rank, or none."""
        self.selection().choose(rank)
        self.session().keep_frame()

    @property
    def without_rank(self) -> str:
        """LLDB keeps the modules of ranks: a rank's own frames go on having its names."""
        thread = self.session().process.GetSelectedThread()
        rank = self.selection().rank_of(thread)
        if rank is None:
            return f"frames are those of thread {thread.GetIndexID()}, globals the unprivatized original's"
        return (
            f"frames are those of thread {thread.GetIndexID()}, on which rank {rank} runs; "
            "in that rank's frames globals are that rank's, in others the unprivatized original's"
        )

    def frames(self, rank: int, limit: int = 0, variables: bool = False) -> Iterator[Frame]:
        """Yield a rank's frames, innermost first, `limit` at most (0: a fixed bound)."""
        session, most = self.session(), limit or frame_description.MOST_FRAMES
        unwound = list(itertools.islice(self.selection().frames(rank), most))
        lost = [activation for activation in unwound if isinstance(activation, Activation)]
        inner = list(session.describer_of(session.moment()).described(unwound[: len(unwound) - len(lost)], variables))
        return itertools.islice(itertools.chain(inner, described(session.moment(), lost, len(inner))), most)

    def user_frame(self, rank: int) -> Union[Any, Activation, None]:
        """The innermost frame in the program's own copy; in any copy if there is none; None without either."""
        return user_frame(self.moment(), rank, self.selection().frames(rank), pc_of)

    def location(self, rank: int) -> str:
        """Return the function and line of a rank's innermost user frame, or ""."""
        moment = self.moment()
        return location_text(moment, moment.rank(rank), self._location_by_frames)

    def _location_by_frames(self, rank: int) -> str:
        try:
            frame = self.user_frame(rank)
        except RanklensError:
            return ""
        if frame is None:
            return ""
        if isinstance(frame, Activation):
            call = self.moment().walker.calls(frame.lookup)[0]
            return call.function + (f" at {Path(call.file).name}:{call.line}" if call.line else "")
        line = frame.GetLineEntry()
        place = f" at {line.GetFileSpec().GetFilename()}:{line.GetLine()}" if line.IsValid() and line.GetLine() else ""
        return (frame_description.function_name(frame) or "??") + place

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[ExpressionValue, Absent]:
        """Return an expression's value in a rank's own frame."""
        frame, value = self._found_in_frame(rank, expression)
        if value is None:
            with self._in_rank(rank) as frame:
                if isinstance(frame, Activation):
                    why = hidden(self.moment(), frame, expression)
                    if why is not None:
                        return why
                    frame = None
                where = frame or self.session().process.GetTarget()
                value = evaluated(where, expression)
                if isinstance(value, Absent):
                    return value
                return ExpressionValue(value_text.text(value, form), lvalue_address(where, expression, value))
        return ExpressionValue(value_text.text(value, form), lvalue_address(frame, expression, value))

    def value_at(self, rank: int, expression: str, address: int, form: str = "") -> Union[ExpressionValue, Absent]:
        """Return what lies at an address, as a value of an expression's type."""
        with self._in_rank(rank) as frame:
            target = self.session().process.GetTarget()
            value_there = evaluated(target if frame is None or isinstance(frame, Activation) else frame, expression)
            if isinstance(value_there, Absent):
                return value_there
            value = target.CreateValueFromAddress("value", lldb.SBAddress(address, target), value_there.GetType())
            return ExpressionValue(value_text.text(value, form), address)

    def values(
        self, numbers: Sequence[int], expression: str, form: str = ""
    ) -> Mapping[int, Union[ExpressionValue, Absent]]:
        """Return an expression's value in each rank, evaluated as seldom as possible."""
        return ManyRanks(self, self.session().process.GetTarget()).values(numbers, expression, form)

    def in_own_frame(self, rank: int, expression: str) -> Any:
        """A variable that LLDB finds from the rank's user frame, None if it finds none there, or is not to be asked."""
        return self._found_in_frame(rank, expression)[1]

    def _found_in_frame(self, rank: int, expression: str) -> tuple[Any, Any]:
        """The rank's user frame and a variable that LLDB finds from there without looking through all modules."""
        if not self.session().modules.may_stay_for(rank):
            return None, None
        try:
            frame = self.user_frame(rank)
        except UsageError:
            return None, None
        if frame is None or isinstance(frame, Activation):
            return None, None
        if self.moment().translator.owner(frame.GetPC()).rank != rank:
            return None, None  # code of all ranks: LLDB has the variables of one of them for it
        value = variable_at_path(frame, expression)
        if not is_found(value) or not self._is_of(rank, value):
            return frame, None
        return frame, value

    def _is_of(self, rank: int, value: Any) -> bool:
        """Whether a value that LLDB found from a rank's frame is that rank's.

        LLDB 23 looks through all modules for names that the frame's file does not define, and takes the first one's.
        """
        address = value.GetAddress().GetLoadAddress(self.session().target)
        if address != lldb.LLDB_INVALID_ADDRESS:
            return self.moment().translator.owner(address).rank == rank
        return value.GetValueType() in (lldb.eValueTypeVariableLocal, lldb.eValueTypeVariableArgument)

    @contextmanager
    def _in_rank(self, rank: int) -> Iterator[Any]:
        """The rank's nearest user frame (None if it has no frames any more), and its globals in focus."""
        session = self.session()
        moment = session.moment()
        moment.rank(rank)
        session.modules.visit(moment, rank)
        try:
            frame = self.user_frame(rank)
        except UsageError:
            frame = None
        yield frame

    def settle(self) -> None:
        """A command has ended: ranks that it has visited are left."""
        with suppress(TargetError):
            self.session().end_command()

    def address(self, expression: str) -> int:
        """Return an expression's address, or its value where it is a pointer or number."""
        selection = self.selection()
        with suppress(NotVirtualizedError):  # names mean what they always mean then
            selection.refocus()
        frame = selection.frame()
        if _REGISTER.fullmatch(expression) and frame is not None and frame.FindRegister(expression[1:]).IsValid():
            return int(frame.FindRegister(expression[1:]).GetValueAsUnsigned())
        where = frame or self.session().process.GetTarget()
        result = evaluated(where, expression)
        if isinstance(result, Absent):
            raise DebuggerError(result.reason, result.hint)
        kind = result.GetType().GetCanonicalType()
        place = None if kind.IsPointerType() else lvalue_address(where, expression, result)
        return int(result.GetValueAsUnsigned()) if place is None else place

    def execute(self, rank: int, command: str) -> str:
        """Run one of LLDB's commands in a rank and return its output."""
        self.session().know_all()
        with self.selection().visiting(rank):
            return execute(self.sb_debugger, command)


def evaluated(where: Any, expression: str) -> Union[Any, Absent]:
    """The value of an expression in a frame or a target; nothing is run in the process for it."""
    result = variable_at_path(where, expression) if isinstance(where, lldb.SBFrame) else None
    if result is None or not is_found(result):
        target = where.GetThread().GetProcess().GetTarget() if isinstance(where, lldb.SBFrame) else where
        if not SESSIONS.of(target.GetProcess()).lends_memory:
            return named(target, expression)
        options = lldb.SBExpressionOptions()
        options.SetAllowJIT(False)
        options.SetIgnoreBreakpoints(True)
        options.SetSuppressPersistentResult(True)
        result = where.EvaluateExpression(expression, options)
        if result.GetError().Success() and may_lose_members(result):
            return declared(where, target, expression, result)
    failure = result.GetError()
    if failure.Fail() and failure.GetError() != VOID:
        return Absent(sentence(failure.GetCString() or ""))
    return result


def declared(where: Any, target: Any, expression: str, result: Any) -> Union[Any, Absent]:
    """The value of an expression of a class type in an old LLDB, by what the module itself says of it."""
    address = lvalue_address(where, expression, result)
    value = (
        None
        if address is None
        else as_declared(target, expression, str(result.GetStaticValue().GetTypeName() or ""), address)
    )
    if value is None:
        return Absent(f"LLDB {version()} may lose members of the result's class", "ask for a variable, or for a member")
    return value


def named(target: Any, expression: str) -> Union[Any, Absent]:
    """A variable by its name alone."""
    if _NAME.fullmatch(expression):
        variable = target.FindFirstGlobalVariable(expression)
        if variable.IsValid() and variable.GetError().Success():
            return variable
        return Absent(f'No symbol "{expression}" in current context')
    sentence = "it would have to call mmap in the process: this stub lends LLDB no memory"
    return Absent(sentence, "ask for a variable by its name, or use lldb-server instead of gdbserver")


def lvalue_address(where: Any, expression: str, value: Any) -> Optional[int]:
    """Where the value of an expression lies, None if it is not an lvalue; in core files LLDB tells only if asked."""
    address = value.GetLoadAddress()
    if address == lldb.LLDB_INVALID_ADDRESS:
        pointer = evaluated(where, f"&({expression})")
        return None if isinstance(pointer, Absent) else int(pointer.GetValueAsUnsigned())
    return int(address)


VOID = 0x1001  # kNoResult of lldb/Expression/UserExpression.h: the expression has no value


def sentence(error: str) -> str:
    """LLDB's error in one line; what both debuggers have to say, in the same words."""
    unknown = _UNDECLARED.search(error)
    if unknown:
        return f'No symbol "{unknown.group(1)}" in current context'
    if "running target" in error or "Interpreter" in error:
        return "it would have to run code in the process, which nothing here does"
    first = next((line for line in error.splitlines() if "error:" in line), error)
    return bare(re.sub(r"^.*?error:\s*(<user expression \d+>:\d+:\d+:\s*)?", "", first))
