"""GDB as a `Debugger`: what the shared commands may ask of a debugger, answered by GDB.

Takes the rank that a question is about, and goes there for the answer (rank_visitor.py).
Never prints, and never catches what commands should report.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Optional, Union

import gdb

from gdbext.gdb_api import frame_description
from gdbext.gdb_api.language import C_FAMILY, language
from gdbext.gdb_api.progress import Progress
from gdbext.gdb_api.run_commands import DebuggerError, execute, gdb_errors
from gdbext.gdb_api.target import path_of
from gdbext.selection import unwinder as frames
from gdbext.selection.rank_visitor import RankVisitor
from gdbext.selection.selection import rank_at, rank_by_code
from pieglobalsfind.debugger.declare import ExpressionValue
from pieglobalsfind.errors import RanklensError, TargetEndedError, UsageError
from pieglobalsfind.model import Absent, Owner
from pieglobalsfind.stacks.frame import Frame

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.values.conditions_in_other_ranks import Conditions

RESULT = "_rank_value"  # the convenience variable through which values, or their addresses, are printed
ADDRESS = 1 << 64
HAVE_PARTS = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY)


class GdbDebugger(RankVisitor):
    """The one object behind every command."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = Progress()
        self._conditions: dict[int, Conditions] = {}  # by inferior

    @property
    def width(self) -> int:
        """Return the terminal's width in columns, 0 if it is unlimited."""
        return int(gdb.parameter("width") or 0)

    @property
    def without_rank(self) -> str:
        """Return what GDB's own commands mean while no rank is selected."""
        return "frames are the thread's, globals the unprivatized original's"

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        """Yield the numbers, and show progress."""
        return self.progress.counted(numbers)

    def rank_that_runs(self) -> Optional[int]:
        """On the thread, inside a breakpoint's `stop`: there nothing of it has been selected yet."""
        moment = self.moment()
        rank = rank_at(moment, int(gdb.parse_and_eval("$sp")) % ADDRESS) or rank_by_code(moment)
        return None if rank is None else rank.rank

    def own_frames(self) -> Iterator[gdb.Frame]:
        """The selected rank's frames, innermost first."""
        stack = self.selection.stack
        if stack is None:
            return frames.chain()
        return frames.own(stack, frames.chain(), lambda frame: frame)

    def frames(self, rank: int, limit: int = 0, variables: bool = False) -> Iterator[Frame]:
        """Yield a rank's frames, innermost first, `limit` at most (0: a fixed bound)."""
        with self.visiting(rank), gdb_errors():
            most = limit or frame_description.MOST_FRAMES
            described = [
                frame_description.describe(frame, variables) for frame, _ in zip(self.own_frames(), range(most))
            ]
        return iter(described)

    def _user_frame(self, rank: int) -> Optional[gdb.Frame]:
        """The innermost frame in the program's own copy; in any copy if there is none."""
        from pieglobalsfind.session.runtime_frames import user_frame

        frames = itertools.islice(self.own_frames(), frame_description.MOST_FRAMES)
        return user_frame(self.moment(), rank, frames, gdb.Frame.pc)

    def location(self, rank: int) -> str:
        """Return the function and line of a rank's innermost user frame, or ""."""
        from pieglobalsfind.session.runtime_frames import location_text

        moment = self.job().of(rank)
        return location_text(moment, moment.rank(rank), self._location_by_frames)

    def _location_by_frames(self, rank: int) -> str:
        try:
            with self.visiting(rank), gdb_errors():
                frame = self._user_frame(rank)
                if frame is None:
                    return ""
                line = frame.find_sal()
                place = f" at {os.path.basename(path_of(line.symtab))}:{line.line}" if line.symtab is not None else ""
                return (frame.name() or "??") + place
        except TargetEndedError:
            raise
        except RanklensError:
            return ""

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[ExpressionValue, Absent]:
        """Return an expression's value in a rank's own frame."""
        from gdbext.values.thread_locals import why_not_the_ranks

        with self._evaluating(rank):
            why = why_not_the_ranks(expression, self.moment().target, self.selection.is_suspended)
            if why:
                return Absent(why)
            return self.value_here(expression, form)

    def values(
        self, numbers: Sequence[int], expression: str, form: str = ""
    ) -> dict[int, Union[ExpressionValue, Absent]]:
        """Return an expression's value in each rank, evaluated as seldom as possible."""
        from gdbext.values.many_ranks import ManyRanks

        with self.returning():
            here = [number for number in numbers if self.job().of(number) is self.moment()]
            return ManyRanks(self).values(here, expression, form)

    @property
    def conditions(self) -> Conditions:
        """Return what evaluates conditions of breakpoints with another rank's symbols, in the selected inferior."""
        from gdbext.values.conditions_in_other_ranks import Conditions

        moment, inferior = self.moment(), gdb.selected_inferior().num
        if inferior not in self._conditions or self._conditions[inferior].moment is not moment:
            self._conditions[inferior] = Conditions(moment)
        return self._conditions[inferior]

    def value_here(self, expression: str, form: str = "") -> Union[ExpressionValue, Absent]:
        """The value of an expression where GDB stands."""
        return self._shown(expression, None, form)

    def value_at(self, rank: int, expression: str, address: int, form: str = "") -> Union[ExpressionValue, Absent]:
        """Return what lies at an address, as a value of an expression's type."""
        with self._evaluating(rank):
            return self._shown(expression, address, form)

    def _shown(self, expression: str, place: Optional[int], form: str) -> Union[ExpressionValue, Absent]:
        """An expression's value, or with `place` what lies there as a value of its type."""
        try:
            with self.selection.explaining_calls():
                value = gdb.parse_and_eval(expression)
                if place is not None:
                    value = gdb.Value(place).cast(value.type.pointer()).dereference()
                address = value.address
                if value.is_optimized_out and bare_code(value.type) not in HAVE_PARTS:
                    # Of a register GDB says "not saved" instead, which a convenience variable does not know.
                    return ExpressionValue(value.format_string(), None)
                keeps_place = address is not None and is_shown_by_address(value.type)
                gdb.set_convenience_variable(RESULT, address if keeps_place else value)
                text = execute(f"output{form} {'*' if keeps_place else ''}${RESULT}")
            return ExpressionValue(text, None if address is None else int(address) % ADDRESS)
        except DebuggerError as error:
            return Absent(error.sentence, error.hint)
        finally:
            gdb.set_convenience_variable(RESULT, None)

    @contextmanager
    def at_user_frame(self, rank: int) -> Iterator[None]:
        """In a rank's nearest user frame, which GDB's own commands then mean."""
        with self._evaluating(rank):
            yield

    @contextmanager
    def _evaluating(self, rank: int) -> Iterator[None]:
        """In the rank's nearest user frame; with its globals alone where it has no frames any more."""
        with ExitStack() as inside:
            try:
                inside.enter_context(self.visiting(rank))
            except UsageError:
                inside.enter_context(self.returning())
                self._move(self._go_to(rank), rank)
            else:
                frame = self._user_frame(rank)
                if frame is not None:
                    frame.select()
            yield

    def address(self, expression: str) -> int:
        """Return an expression's address, or its value where it is a pointer or number."""
        with gdb_errors():
            value = gdb.parse_and_eval(expression)
            is_pointer = value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR
            if value.address is not None and not is_pointer:
                return int(value.address) % ADDRESS
            return int(value) % ADDRESS

    def owner(self, address: int) -> Owner:
        """Return which rank and object own an address."""
        return self.moment().translator.owner(address)

    def execute(self, rank: int, command: str) -> str:
        """Run one of GDB's commands in a rank and return its output."""
        with self.visiting(rank), self._applying(rank), self.selection.explaining_calls():
            return execute(command)

    @contextmanager
    def _applying(self, rank: int) -> Iterator[None]:
        """To the command that is carried out inside the rank is the selected one, as a thread is to `thread apply`."""
        before, self._applied = self._applied, rank
        try:
            yield
        finally:
            self._applied = before


def is_shown_by_address(kind: gdb.Type) -> bool:
    """Whether GDB shows a value by its address, which it has not in a convenience variable.

    A function's value is its address, and the printer of a std::list knows the end of the list by it. What is not a
    struct may be a few bits, which a pointer can't mean.
    """
    code = bare_code(kind)
    return code == gdb.TYPE_CODE_FUNC or (code in HAVE_PARTS and language() in C_FAMILY)


def bare_code(kind: gdb.Type) -> int:
    """The code of a type without its typedefs."""
    return kind.strip_typedefs().code
