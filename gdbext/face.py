"""GDB as a `Face`: what the shared commands may ask of a debugger, answered by GDB.

Takes GDB's selected inferior, and those of the same job where a command spans them; keeps what is selected.
Never prints, and never catches what commands should report.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

import gdb

from gdbext import backtraces, frames, stacks
from gdbext.displays import Displays
from gdbext.frames import RankFilter, RankUnwinder, select_level
from gdbext.inferiors import Inferiors, State, enter
from gdbext.locations import forget_hit
from gdbext.progress import Progress
from gdbext.quiet import DebuggerError, execute, gdb_errors, uninterrupted
from gdbext.selection import Selection, rank_at
from gdbext.settings import Settings
from gdbext.target import is_selected, open_inferior, path_of
from gdbext.watches import Watches
from pieglobalsfind.command import Value
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetEndedError, TargetError, UsageError
from pieglobalsfind.facts import dataclass
from pieglobalsfind.frame import Backtrace, Frame
from pieglobalsfind.hints import TYPE_CHECKING, Optional, TypeVar, Union
from pieglobalsfind.model import PC, Absent, Owner
from pieglobalsfind.moment import Moment
from pieglobalsfind.target import Target

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.quick_backtraces import QuickBacktraces
    from pieglobalsfind.fold import Folded
    from pieglobalsfind.job_moment import JobMoment

Item = TypeVar("Item")

RESULT = "_rank_value"  # the convenience variable through which values are printed
POINTERS = (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_INT, gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
ADDRESS = 1 << 64


@dataclass(frozen=True)
class Home:
    """What the user has selected while a command visits other ranks."""

    rank: Optional[int]
    reason: str
    inferior: int
    thread: Optional[gdb.InferiorThread]
    level: int
    runs: int
    moves: int


class GdbFace:
    """The one object behind every command."""

    def __init__(self) -> None:
        self._settings = Settings()
        self.selection = Selection(RankUnwinder(), RankFilter(self.folded))
        self.displays = Displays()
        self.watches = Watches()
        self.inferiors = Inferiors(self.selection, self._settings, self.displays, self.watches)
        self._is_visiting = False
        self._applied: Optional[int] = None  # whom a user's command is carried out for
        self.progress = Progress()
        self._quick: dict[int, QuickBacktraces] = {}  # by inferior
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
        from pieglobalsfind.fold import Folded, fold

        if not self.folds_runtime or self.selection.rank is None:
            return Folded(0, iter(items))
        return fold(self.moment(), items, pc_of)

    def state(self) -> State:
        """Of the selected inferior."""
        return self.inferiors.state()

    def moment(self) -> Moment:
        return self.inferiors.moment()

    def job(self) -> JobMoment:
        return self.inferiors.job()

    @property
    def selected(self) -> Optional[int]:
        if self._applied is not None:
            return self._applied
        return self.selection.rank if self._home is None else self._home.rank

    @property
    def reason(self) -> str:
        if self._applied is not None:
            return "the command is applied to it"
        return self.selection.reason if self._home is None else self._home.reason

    @property
    def without_rank(self) -> str:
        return "frames are the thread's, globals the unprivatized original's"

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        return self.progress.counted(numbers)

    def select(self, rank: Optional[int]) -> None:
        before = self._home
        self._home = self._applied = None
        if rank is None:
            self._forget_hit(None)
            with suppress(NotVirtualizedError, TargetError):  # where it has no ranks there is nothing to move
                self._move(self.moment(), None)
            self.selection.clear("you asked for none")
            return
        try:
            self._enter(rank, "you asked for it")
        except RanklensError:
            self._home = before
            raise
        self._show_source()

    def target(self) -> Target:
        return open_inferior()

    def enter(self, registers: Optional[Mapping[int, int]], reason: str) -> Backtrace:
        from pieglobalsfind.saved_context import is_return_address
        from pieglobalsfind.suspended import from_registers, has_ranks, moment_of

        selection, target = self.selection, self.target()
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
        from gdbext.contexts import walk

        return walk(selection, registers, reason)

    def _go_to(self, rank: int) -> Moment:
        """The rank's inferior is the selected one afterwards."""
        job = self.job()
        job.check_has_arrived(rank)
        process = job.process(rank)
        self.inferiors.enter(process)
        return process.moment

    def _enter(self, rank: int, reason: str) -> None:
        """Select a rank, its inferior and its innermost frame."""
        self._forget_hit(rank)
        moment, selection = self._go_to(rank), self.selection
        selection.choose(moment, rank, reason)
        self._move(moment, rank)
        if selection.stack is not None and selection.is_suspended:
            own = frames.own(selection.stack, frames.chain(), lambda frame: frame)
            innermost = next(self.folded(own, lambda frame: frame).shown, None)
            if innermost is None:
                selection.clear(f"rank {rank} has no frames")
                raise TargetError(f"rank {rank}'s stack can't be walked", f"rank info {rank} tells what is known of it")
            if innermost.find_sal().symtab is None:
                frames.speak_as_program(selection.stack)
            innermost.select()

    def _forget_hit(self, rank: Optional[int]) -> None:
        """Before symbols move to another rank than the selected one."""
        if self.inferiors.hit_moves and self.selection.rank != rank:
            self.inferiors.hit_moves = False
            forget_hit()

    def _move(self, moment: Moment, rank: Optional[int]) -> None:
        state = self.state()
        failures = state.focus.move(moment, rank)
        if rank is not None and not path_of(gdb.selected_inferior().progspace):
            failures = (*failures, "GDB has not been told the program, and stacks are wrong without: `file PROGRAM`")
        for failure in failures:
            if failure not in state.told:
                state.told.add(failure)
                gdb.write(f"warning: {failure}\n", gdb.STDERR)

    def _show_source(self) -> None:
        """Make a plain `list` begin at the selected frame, and windows and front ends show it, as after `thread N`.

        GDB tells them where a command of its own selects another frame than before; and says it to the user, whom our
        commands have told already.
        """
        chosen = gdb.selected_frame()
        other = chosen.newer() or chosen.older()
        if other is not None:
            other.select()
            execute(f"with suppress-cli-notifications on -- frame level {chosen.level()}")
        execute("frame")

    def follow(self) -> bool:
        """Select the rank that runs on GDB's thread, or none; True if symbols mean another one than before."""
        try:
            return self.follow_thread()
        except (NotVirtualizedError, TargetError):
            self.selection.clear("the program has no ranks")
            return False

    def follow_thread(self) -> bool:
        """The same; raises `NotVirtualizedError` or `TargetError` if the inferior has no ranks."""
        state, moment = self.state(), self.moment()
        before, moves = state.focus.rank, state.focus.moves
        self.selection.follow_thread(moment)
        self._move(moment, self.selection.rank)
        if state.focus.rank == before and state.focus.moves != moves:
            list_from_frame()
        return state.focus.rank != before

    @contextmanager
    def returning(self) -> Iterator[None]:
        """What the user has selected is so again afterwards, however many ranks are visited inside."""
        if self._is_visiting:
            yield
            return
        self._home, self._is_visiting = self._here(), True
        try:
            yield
        finally:
            home, self._home, self._is_visiting = self._home, None, False
            self._quick.clear()
            if home is not None and home.runs == self.inferiors.runs:  # else what was selected is no more
                with uninterrupted():
                    self._return(home)
            self.displays.settle()

    def _here(self) -> Home:
        """What is selected now, also where GDB has told nobody: of another thread, or of a core file just opened."""
        thread, selection, number = gdb.selected_thread(), self.selection, gdb.selected_inferior().num
        runs = thread is not None and thread.is_running()
        if not runs and selection.thread != (0 if thread is None else thread.global_num):
            self.follow()
        level = gdb.selected_frame().level() if thread is not None and not runs else 0
        moves = self.state().focus.moves
        return Home(selection.rank, selection.reason, number, thread, level, self.inferiors.runs, moves)

    def _return(self, home: Home) -> None:
        if home.thread is None or not home.thread.is_valid():
            enter(home.inferior)
        elif not is_selected(home.thread):
            home.thread.switch()
        moment = self.state().moment
        if moment is None:  # nothing of it was looked at
            if self.selection.rank is not None:
                self.selection.clear(home.reason)
            return
        if self.selection.rank != home.rank:
            if home.rank is None:
                self.selection.clear(home.reason)
            else:
                self.selection.choose(moment, home.rank, home.reason)
        if self.state().focus.rank != home.rank:
            self._move(moment, home.rank)
        select_level(home.level)
        if self.state().focus.moves != home.moves:
            list_from_frame()

    @contextmanager
    def visiting(self, rank: int) -> Iterator[None]:
        """The rank is selected inside; where the user was in it, if it is the user's own."""
        with self.returning():
            home = self._home
            is_there = self.selection.inferior == gdb.selected_inferior().num and self.selection.rank == rank
            if not is_there or self.state().focus.rank != rank:
                self._enter(rank, self.selection.reason)
            if home is not None and home.rank == rank:
                select_level(home.level)
            yield

    @property
    def in_focus(self) -> Optional[int]:
        """The rank that symbols mean."""
        return self.state().focus.rank

    def rank_that_runs(self) -> Optional[int]:
        """On the thread, inside a breakpoint's `stop`: there nothing of it has been selected yet."""
        found = rank_at(self.moment(), int(gdb.parse_and_eval("$rsp")) % ADDRESS)
        return None if found is None else found.rank

    def own_frames(self) -> Iterator[gdb.Frame]:
        """The selected rank's frames, innermost first."""
        stack = self.selection.stack
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
        from pieglobalsfind.fold import user_frame

        frames = itertools.islice(self.own_frames(), stacks.MOST_FRAMES)
        return user_frame(self.moment(), rank, frames, gdb.Frame.pc)

    def location(self, rank: int) -> str:
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

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[Value, Absent]:
        with self._evaluating(rank):
            try:
                with self.selection.explaining_calls():
                    value = gdb.parse_and_eval(expression)
                    gdb.set_convenience_variable(RESULT, value)
                    text = execute(f"output{form} ${RESULT}")
                    address = value.address
                return Value(text, None if address is None else int(address) % ADDRESS)
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
        with gdb_errors():
            value = gdb.parse_and_eval(expression)
            is_pointer = value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR
            if value.address is not None and not is_pointer:
                return int(value.address) % ADDRESS
            return int(value) % ADDRESS

    def owner(self, address: int) -> Owner:
        return self.moment().translator.owner(address)

    def execute(self, rank: int, command: str) -> str:
        if re.fullmatch(backtraces.BACKTRACE, command):
            with self.returning():
                self._go_to(rank)
                return self._backtraces().text(rank, command)
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

    def _backtraces(self) -> QuickBacktraces:
        """They live until the user's command ends: what the user sets later may change how frames look."""
        from gdbext.quick_backtraces import QuickBacktraces

        number = gdb.selected_inferior().num
        if number not in self._quick:
            self._quick[number] = QuickBacktraces(self)
        return self._quick[number]


def list_from_frame() -> None:
    """Let a plain `list` and `info line` begin at the selected frame: GDB forgets where they were with the symbols."""
    with suppress(DebuggerError):  # there is none, or its stack can't be read
        execute("frame")
