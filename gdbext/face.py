"""GDB as a `Face`: what the shared commands may ask of a debugger, answered by GDB.

Takes GDB's selected inferior; keeps per inferior the rank table of the current stop, the focus and the selection.
Never prints, and never catches what commands should report.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Optional, TypeVar, Union

import gdb

from gdbext import backtraces, frames, stacks
from gdbext.focus import Focus
from gdbext.frames import RankFilter, RankUnwinder
from gdbext.progress import Progress
from gdbext.quiet import DebuggerError, execute, gdb_errors, uninterrupted
from gdbext.selection import Selection
from gdbext.settings import Settings
from gdbext.target import open_inferior
from pieglobalsfind.command import Frame, Moment, Value
from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError, TargetError, UsageError
from pieglobalsfind.fold import Folded, fold
from pieglobalsfind.model import Absent, Owner
from pieglobalsfind.saved_context import PC, is_return_address
from pieglobalsfind.suspended import Backtrace, from_registers, has_ranks, moment_of
from pieglobalsfind.target import Target

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.quick_backtraces import QuickBacktraces

Item = TypeVar("Item")

RESULT = "_rank_value"  # the convenience variable through which values are printed
POINTERS = (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_INT, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
ADDRESS = 1 << 64


@dataclass(frozen=True)
class Home:
    """What the user has selected while a command visits other ranks."""

    rank: Optional[int]
    reason: str
    thread: Optional[gdb.InferiorThread]
    level: int


class State:
    """What is known of one inferior."""

    def __init__(self, selection: Selection, settings: Settings) -> None:
        self.pid = 0
        self.moment: Optional[Moment] = None
        self.focus = Focus(settings)
        self.selection = selection
        self.told: set[str] = set()


class GdbFace:
    """The one object behind every command."""

    def __init__(self) -> None:
        self._unwinder = RankUnwinder()
        self._settings = Settings()
        self._filter = RankFilter(self.folded)
        gdb.unwinder.register_unwinder(None, self._unwinder, replace=True)
        self._states: dict[int, State] = {}
        self._is_visiting = False
        self._applied: Optional[int] = None  # whom a user's command is carried out for
        self.progress = Progress()
        self._quick: Optional[QuickBacktraces] = None
        self._home: Optional[Home] = None  # where to return to; None also once the user's command has selected anew

    @property
    def width(self) -> int:
        return int(gdb.parameter("width") or 0)

    @property
    def folds_runtime(self) -> bool:
        return self._settings.folds_runtime

    def folded(self, frames: Iterable[Item], frame_of: Callable[[Item], gdb.Frame]) -> Folded[Item]:
        """Frames of a rank, or what stands for them, without the runtime's own if the user wants that."""
        return self.folded_at(frames, lambda one: frame_of(one).pc())

    def folded_at(self, items: Iterable[Item], pc_of: Callable[[Item], int]) -> Folded[Item]:
        """The same of whatever has a pc."""
        if not self.folds_runtime or self.state().selection.rank is None:
            return Folded(0, iter(items))
        return fold(self.moment(), items, pc_of)

    def state(self) -> State:
        """Of the selected inferior; a process that has been replaced is forgotten."""
        inferior = gdb.selected_inferior()
        state = self._states.get(inferior.num)
        if state is None:
            state = State(Selection(self._unwinder, self._filter), self._settings)
            self._states[inferior.num] = state
        if state.pid != inferior.pid:
            state.pid = inferior.pid
            state.moment = None
            state.told.clear()
            state.focus.forget()
            state.selection.clear("the process is new")
        return state

    def moment(self) -> Moment:
        state = self.state()
        if state.moment is None:
            target = open_inferior()
            state.moment = Moment(target, decode(target))
        return state.moment

    @property
    def selected(self) -> Optional[int]:
        if self._applied is not None:
            return self._applied
        return self.state().selection.rank if self._home is None else self._home.rank

    @property
    def reason(self) -> str:
        if self._applied is not None:
            return "the command is applied to it"
        return self.state().selection.reason if self._home is None else self._home.reason

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        return self.progress.counted(numbers)

    def select(self, rank: Optional[int]) -> None:
        state, moment = self.state(), self.moment()
        self._home = self._applied = None
        if rank is None:
            self._move(moment, None)
            state.selection.clear("you asked for none")
        else:
            self._enter(moment, rank, "you asked for it")
            self._show_source()

    def target(self) -> Target:
        return open_inferior()

    def enter(self, registers: Optional[Mapping[int, int]], reason: str) -> Backtrace:
        selection, target = self.state().selection, self.target()
        self._home = self._applied = None
        moment = self.moment() if has_ranks(target) else None
        if registers is None:
            if moment is None:
                selection.clear(reason)
            else:
                self.follow_thread()
            return Backtrace((), "")
        if moment is not None:  # the thread may be in a rank's copy
            self._move(moment, moment.translator.owner(registers[PC]).rank)
        if not is_return_address(target, registers[PC]):  # GDB would look for it in the function before
            selection.clear("what you asked for was never entered")
            return from_registers(moment or moment_of(target), registers)
        with gdb_errors():
            stack = selection.choose_registers(registers, reason)
            own = frames.own(stack, frames.chain(), lambda frame: frame)
            found = list(itertools.islice(own, stacks.MOST_FRAMES))
            if not found:
                selection.clear("the stack that you asked for can't be walked")
                raise TargetError("GDB can't walk that stack")
            found[0].select()
            return Backtrace(tuple(stacks.describe(frame, False) for frame in found), "")

    def _enter(self, moment: Moment, rank: int, reason: str) -> None:
        """Select a rank and its innermost frame; leaves everything as it was on failure."""
        state = self.state()
        state.selection.choose(moment, rank, reason)
        self._move(moment, rank)
        if state.selection.stack is not None and state.selection.is_suspended:
            own = frames.own(state.selection.stack, frames.chain(), lambda frame: frame)
            innermost = next(self.folded(own, lambda frame: frame).shown, None)
            if innermost is None:
                state.selection.clear(f"rank {rank} has no frames")
                raise TargetError(f"rank {rank}'s stack can't be walked", f"rank info {rank} tells what is known of it")
            innermost.select()

    def _move(self, moment: Moment, rank: Optional[int]) -> None:
        state = self.state()
        for failure in state.focus.move(moment, rank):
            if failure not in state.told:
                state.told.add(failure)
                gdb.write(f"warning: {failure}\n", gdb.STDERR)

    def _show_source(self) -> None:
        """Make a plain `list` begin at the selected frame, as after `thread N`."""
        execute("frame")

    def follow_thread(self) -> bool:
        """Select the rank that runs on GDB's thread; True if symbols mean another rank than before."""
        state, moment = self.state(), self.moment()
        before = state.focus.rank
        state.selection.follow_thread(moment)
        self._move(moment, state.selection.rank)
        return state.focus.rank != before

    @contextmanager
    def returning(self) -> Iterator[None]:
        """What the user has selected is so again afterwards, however many ranks are visited inside."""
        if self._is_visiting:
            yield
            return
        selection, thread = self.state().selection, gdb.selected_thread()
        level = gdb.selected_frame().level() if thread is not None else 0
        self._home, self._is_visiting = Home(selection.rank, selection.reason, thread, level), True
        try:
            yield
        finally:
            home, self._home, self._is_visiting, self._quick = self._home, None, False, None
            if home is not None and selection is self.state().selection:
                with uninterrupted():
                    self._return(home)

    def _return(self, home: Home) -> None:
        state = self.state()
        if state.moment is None:
            return  # the target ran or ended meanwhile: what was selected is no more
        if home.thread is not None and home.thread.is_valid():
            home.thread.switch()
        if state.selection.rank != home.rank:
            if home.rank is None:
                state.selection.clear(home.reason)
            else:
                state.selection.choose(state.moment, home.rank, home.reason)
        if state.focus.rank != home.rank:
            self._move(state.moment, home.rank)
        select_level(home.level)

    @contextmanager
    def visiting(self, rank: int) -> Iterator[None]:
        """The rank is selected inside; where the user was in it, if it is the user's own."""
        with self.returning():
            state, moment, home = self.state(), self.moment(), self._home
            if state.selection.rank != rank or state.focus.rank != rank:
                self._enter(moment, rank, state.selection.reason)
            if home is not None and home.rank == rank:
                select_level(home.level)
            yield

    @property
    def in_focus(self) -> Optional[int]:
        """The rank that symbols mean."""
        return self.state().focus.rank

    def own_frames(self) -> Iterator[gdb.Frame]:
        """The selected rank's frames, innermost first."""
        stack = self.state().selection.stack
        if stack is None:
            return frames.chain()
        return frames.own(stack, frames.chain(), lambda frame: frame)

    def frames(self, rank: int, limit: int = 0, variables: bool = False) -> Iterator[Frame]:
        with self.visiting(rank), gdb_errors():
            most = limit or stacks.MOST_FRAMES
            found = [stacks.describe(frame, variables) for frame, _ in zip(self.own_frames(), range(most))]
        return iter(found)

    def _user_frame(self, rank: int) -> Optional[gdb.Frame]:
        """The innermost frame in the program's own copy; in any copy if there is none."""
        moment = self.moment()
        nearest: Optional[gdb.Frame] = None
        for frame, _ in zip(self.own_frames(), range(stacks.MOST_FRAMES)):
            owner = moment.translator.owner(frame.pc())
            if owner.rank == rank and owner.object is not None:
                if moment.table.objects[owner.object].is_program:
                    return frame
                nearest = nearest or frame
        return nearest

    def location(self, rank: int) -> str:
        try:
            with self.visiting(rank), gdb_errors():
                frame = self._user_frame(rank)
                if frame is None:
                    return ""
                line = frame.find_sal()
                place = f" at {Path(line.symtab.filename).name}:{line.line}" if line.symtab is not None else ""
                return (frame.name() or "??") + place
        except RanklensError:
            return ""

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[Value, Absent]:
        with self._evaluating(rank):
            try:
                value = gdb.parse_and_eval(expression)
                gdb.set_convenience_variable(RESULT, value)
                text = execute(f"output{form} ${RESULT}")
                address = value.address
                return Value(text, None if address is None else int(address) % ADDRESS)
            except (gdb.error, DebuggerError) as error:
                return Absent(str(error).rstrip("."))
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
        moment = self.moment()
        try:
            with self.visiting(rank):
                frame = self._user_frame(rank)
                if frame is not None:
                    frame.select()
                yield
        except UsageError:
            moment.rank(rank)
            with self.returning():
                self._move(moment, rank)
                yield

    def address(self, expression: str) -> int:
        with gdb_errors():
            value = gdb.parse_and_eval(expression)
            is_pointer = value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR
            if value.address is not None and not is_pointer:
                return int(value.address) % ADDRESS
            return int(value) % ADDRESS

    def symbol_address(self, name: str, rank: int) -> int:
        """Where a rank has its own instance of a symbol; raises `DebuggerError` if there is no such symbol."""
        moment = self.moment()
        moment.rank(rank)
        with gdb_errors():
            found = self._program_symbol(name)
        owner = moment.translator.owner(found)
        if owner.object is None:
            raise UsageError(f"{name} is not private to ranks", f"print &{name} tells its one address")
        return moment.translator.rank_address(rank, owner.object, owner.offset)

    def _program_symbol(self, name: str) -> int:
        """A symbol of the copied objects before one of the same name elsewhere."""
        paths = self.state().focus.paths
        for objfile in gdb.objfiles():
            if objfile.filename in paths:
                symbol = objfile.lookup_global_symbol(name) or objfile.lookup_static_symbol(name)
                if symbol is not None and not symbol.needs_frame and symbol.value().address is not None:
                    return int(symbol.value().address or 0)
        return self.address(f"&{name}")

    def owner(self, address: int) -> Owner:
        return self.moment().translator.owner(address)

    def execute(self, rank: int, command: str) -> str:
        if backtraces.BACKTRACE.fullmatch(command):
            with self.returning():
                return self._backtraces().text(rank, command)
        with self.visiting(rank), self._applying(rank):
            return execute(command)

    @contextmanager
    def _applying(self, rank: int) -> Iterator[None]:
        """To the command that is carried out inside the rank is the selected one, as a thread is to `thread apply`."""
        before, self._applied = self._applied, rank
        try:
            yield
        finally:
            self._applied = before

    def _backtraces(self) -> QuickBacktraces:
        """They live until the user's command ends: what the user sets later may change how frames look."""
        from gdbext.quick_backtraces import QuickBacktraces

        if self._quick is None:
            self._quick = QuickBacktraces(self)
        return self._quick


def select_level(level: int) -> None:
    """Select the frame of a level in GDB's chain, or the nearest one that there is."""
    for frame in frames.chain():
        if frame.level() == level:
            frame.select()
            return
