"""Which rank is selected in GDB, and how a command goes to other ranks and comes back to where the user was.

Takes GDB's selected inferior, and those of the same job where a rank is in another; moves symbols with the selection.
Prints nothing but where files of the job can't be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, TypeVar

import gdb

from gdbext.displays.displays import Displays
from gdbext.gdb_api.breakpoint_locations import forget_hit
from gdbext.gdb_api.language import is_automatic, language
from gdbext.gdb_api.libraries.forget import is_any_read
from gdbext.gdb_api.processor import processor
from gdbext.gdb_api.rank_settings import Settings
from gdbext.gdb_api.run_commands import DebuggerError, execute, gdb_errors, uninterrupted
from gdbext.gdb_api.target import is_selected, open_inferior, path_of
from gdbext.selection import unwinder as frames
from gdbext.selection.inferiors import Inferiors, InferiorState, enter
from gdbext.selection.selection import Selection
from gdbext.selection.unwinder import RankFilter, RankUnwinder, select_level
from gdbext.watchpoints.watchpoints import Watches
from pieglobalsfind.debugger.wording import ORIGINAL_IN_USE
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError
from pieglobalsfind.ranks.variable_address import runs_original
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.frame import Backtrace
from pieglobalsfind.target import Target

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from pieglobalsfind.session.job_view import JobView
    from pieglobalsfind.session.runtime_frames import Folded

Item = TypeVar("Item")


@dataclass(frozen=True)
class UserSelection:
    """What the user has selected while a command visits other ranks."""

    rank: Optional[int]
    reason: str
    inferior: int
    thread: Optional[gdb.InferiorThread]
    level: int
    runs: int
    moves: int
    language: str  # "" if the user has set one


class RankVisitor:
    """The selected rank, and visits to others."""

    def __init__(self) -> None:
        self._settings = Settings()
        self.selection = Selection(RankUnwinder(), RankFilter(self.folded))
        self.displays = Displays()
        self.watches = Watches()
        self.inferiors = Inferiors(self.selection, self._settings, self.displays, self.watches)
        self.displays.are_symbols_there = lambda: self.inferiors.rank_in_focus is not None
        self._is_visiting = False
        self._applied: Optional[int] = None  # the rank for which a user's command is carried out
        self._home: Optional[UserSelection] = (
            None  # where to return to; None also once the user's command has selected again
        )

    @property
    def selected(self) -> Optional[int]:
        """Return the rank that the user has selected, or None."""
        if self._applied is not None:
            return self._applied
        return self.selection.rank if self._home is None else self._home.rank

    @property
    def reason(self) -> str:
        """Return why that rank is selected."""
        if self._applied is not None:
            return "the command is applied to it"
        return self.selection.reason if self._home is None else self._home.reason

    @property
    def folds_runtime(self) -> bool:
        """Return whether the runtime's frames are folded."""
        return self._settings.folds_runtime

    def folded(self, frames: Iterable[Item], frame_of: Callable[[Item], gdb.Frame]) -> Folded[Item]:
        """Frames of a rank, or what stands for them, without the runtime's own if the user wants that."""
        from pieglobalsfind.session.runtime_frames import Folded, fold

        if not self.folds_runtime or self.selection.rank is None:
            return Folded(0, iter(frames))
        return fold(self.moment(), frames, lambda item: frame_of(item).pc())

    def state(self) -> InferiorState:
        """Of the selected inferior."""
        return self.inferiors.state()

    def moment(self) -> ProcessView:
        """Return the selected inferior between two stops."""
        return self.inferiors.moment()

    def has_originals(self) -> bool:
        """Whether GDB has still to forget symbols that it has read by itself, as after it followed a fork."""
        try:
            return self.state().focus.has_originals(self.moment())
        except RanklensError:
            return False

    def job(self) -> JobView:
        """Return all inferiors of the job."""
        return self.inferiors.job()

    def target(self) -> Target:
        """Return the selected inferior as a target."""
        return open_inferior()

    def select(self, rank: Optional[int]) -> None:
        """Select a rank, or none."""
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

    def enter(self, registers: Optional[Mapping[int, int]], reason: str) -> Backtrace:
        """Let GDB's frames begin at given registers; returns what they are."""
        from pieglobalsfind.decoders.saved_context import is_return_address
        from pieglobalsfind.session.suspended import from_registers, has_ranks, moment_of

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
            self._move(moment, moment.translator.owner(registers[processor().pc]).rank)
        if not is_return_address(
            target, processor(), registers[processor().pc]
        ):  # GDB would look for it in the function before
            selection.clear("the part that you asked for was never entered")
            return from_registers(moment or moment_of(target), registers)
        from gdbext.selection.fiber_stack import walk

        return walk(selection, registers, reason)

    def _go_to(self, rank: int) -> ProcessView:
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
                raise TargetError(f"rank {rank}'s stack can't be unwound", f"rank info {rank} shows what is known")
            if innermost.find_sal().symtab is None:
                frames.speak_as_program(selection.stack)
            innermost.select()

    def _forget_hit(self, rank: Optional[int]) -> None:
        """Before symbols move to another rank than the selected one."""
        if self.inferiors.hit_moves and self.selection.rank != rank:
            self.inferiors.hit_moves = not forget_hit()

    def _move(self, moment: ProcessView, rank: Optional[int]) -> None:
        state = self.state()
        failures = state.focus.move(moment, rank)
        if rank is not None and not path_of(gdb.selected_inferior().progspace) and not is_any_read():
            failures = (*failures, "GDB does not know the program, and stacks are wrong without it: `file PROGRAM`")
        if rank is not None and any(runs_original(moment.rank(rank), used) for used in moment.table.objects):
            failures = (*failures, ORIGINAL_IN_USE)
        for failure in failures:
            if failure not in state.told:
                state.told.add(failure)
                gdb.write(f"warning: {failure}\n", gdb.STDERR)

    def _show_source(self) -> None:
        """Make a plain `list` begin at the selected frame, and windows and front ends show it, as after `thread N`.

        GDB tells them where a command of its own selects another frame than before; and prints it, which our
        commands have done already. From version 18 on it does not where Python takes the command's output.
        """
        chosen = gdb.selected_frame()
        other = chosen.newer() or chosen.older()
        if other is not None:
            other.select()
            with gdb_errors():
                gdb.execute(f"with suppress-cli-notifications on -- frame level {chosen.level()}")
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
            if home is not None and home.runs == self.inferiors.runs:  # else what was selected is no more
                with uninterrupted():
                    self._return(home)

    def _here(self) -> UserSelection:
        """What is selected now, also where GDB has reported nothing: in another thread, or a core file just opened."""
        thread, selection, number = gdb.selected_thread(), self.selection, gdb.selected_inferior().num
        runs = thread is not None and thread.is_running()
        if not runs and selection.thread != (0 if thread is None else thread.global_num):
            self.follow()
        level = gdb.selected_frame().level() if thread is not None and not runs else 0
        moves, spoken = self.state().focus.moves, language() if is_automatic() else ""
        return UserSelection(
            selection.rank, selection.reason, number, thread, level, self.inferiors.runs, moves, spoken
        )

    def _return(self, home: UserSelection) -> None:
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
        if home.language and is_automatic() and language() != home.language:
            frames.speak(home.language, home.level)
        if self.state().focus.moves != home.moves:
            list_from_frame()

    @contextmanager
    def visiting(self, rank: int) -> Iterator[None]:
        """The rank is selected inside; where the user was in it, if it is the user's own."""
        with self.returning():
            home = self._home
            thread = gdb.selected_thread()
            is_there = self.selection.inferior == gdb.selected_inferior().num and self.selection.rank == rank
            is_there = is_there and thread is not None and thread.global_num == self.selection.thread
            if not is_there or self.state().focus.rank != rank:
                self._enter(rank, self.selection.reason)
            if home is not None and home.rank == rank:
                select_level(home.level)
            yield

    @property
    def in_focus(self) -> Optional[int]:
        """The rank that symbols mean."""
        return self.state().focus.rank


def list_from_frame() -> None:
    """Let a plain `list` and `info line` begin at the selected frame: GDB forgets where they were with the symbols."""
    with suppress(DebuggerError):  # there is none, or its stack can't be read
        execute("frame")
