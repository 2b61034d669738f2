"""The inferiors of one GDB: what is known of each between two stops, and which of them are processes of one job.

Takes GDB's inferiors; gives rank tables. It goes from one inferior to another and back, and runs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Optional

import gdb

from gdbext.displays.displays import Displays
from gdbext.gdb_api.rank_settings import Settings
from gdbext.gdb_api.run_commands import execute, gdb_errors, set_convenience
from gdbext.gdb_api.target import LocalInferior, connection_kind, open_inferior
from gdbext.selection.selection import Selection
from gdbext.selection.unwinder import select_level
from gdbext.symbols.focus import Focus
from gdbext.watchpoints.watchpoints import Watches
from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError, UsageError
from pieglobalsfind.model import RankTable
from pieglobalsfind.session.process_view import ProcessView

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from pieglobalsfind.session.job_view import JobView, ViewedProcess

JobKey = tuple[str, object]


class InferiorState:
    """What is known of one inferior."""

    def __init__(self, settings: Settings, displays: Displays, watches: Watches, on_move: Callable[[], None]) -> None:
        self.pid = 0
        self.moment: Optional[ProcessView] = None
        self.focus = Focus(settings, displays, watches, on_move)
        self.told: set[str] = set()


class Inferiors:
    """All inferiors, and the rank tables of their processes while these stand still."""

    def __init__(self, selection: Selection, settings: Settings, displays: Displays, watches: Watches) -> None:
        self._selection = selection
        self._settings = settings
        self._displays = displays
        self._watches = watches
        self._states: dict[int, InferiorState] = {}
        self._jobs: dict[int, JobView] = {}
        self.runs = 0  # how often something has run since
        self.before_move: Callable[[], None] = lambda: None  # called before symbols mean another rank
        self.on_move: Callable[[], None] = lambda: None  # called once they do
        self.before_symbols: Callable[[], None] = lambda: None  # called before GDB reads those of a rank
        self.without_symbols: Callable[[], AbstractContextManager[None]] = nullcontext  # where it drops them
        self.hit_moves = False  # whether a breakpoint may have stopped whose places move with symbols

    @property
    def are_several(self) -> bool:
        """Whether there are several processes."""
        return sum(bool(inferior.pid) for inferior in gdb.inferiors()) > 1

    def state(self) -> InferiorState:
        """Of the selected inferior; a process that has been replaced is forgotten."""
        inferior = gdb.selected_inferior()
        state = self._states.get(inferior.num)
        if state is None:
            state = self._states[inferior.num] = InferiorState(
                self._settings, self._displays, self._watches, lambda: self.on_move()
            )
            state.focus.before_move = lambda: self.before_move()
            state.focus.before_symbols = lambda: self.before_symbols()
            state.focus.without_symbols = lambda: self.without_symbols()
        if state.pid != inferior.pid:
            state.pid = inferior.pid
            state.told.clear()
            if inferior.pid:
                state.focus.forget()
                state.focus.restore_program()
            else:
                state.focus.end()
            self.forget_moment()
            if self._selection.inferior in (0, inferior.num):
                self._selection.forget("the process is new")
        return state

    @property
    def is_moving(self) -> bool:
        """Whether symbols are just being moved, in whichever inferior; nothing is looked at for it."""
        return any(state.focus.moving for state in self._states.values())

    @property
    def rank_in_focus(self) -> Optional[int]:
        """The rank that the selected inferior's symbols mean; nothing is looked at for it."""
        inferior = gdb.selected_inferior()
        state = self._states.get(inferior.num)
        return state.focus.rank if state is not None and state.pid == inferior.pid else None

    def give_back_libraries(self, for_good: bool = False) -> None:
        """Something has stopped, or (`for_good`) there is another inferior, whose libraries GDB has to read itself."""
        for state in self._states.values():
            libraries = state.focus.late_libraries
            if for_good:
                libraries.give_back()
            else:
                libraries.stopped()

    def forget_moment(self) -> None:
        """The selected inferior's ranks are to be read again."""
        state = self._states.get(gdb.selected_inferior().num)
        if state is not None:
            state.moment = None
        self._jobs.clear()

    def has_run(self) -> None:
        """What was read of any inferior may be no longer so."""
        self.runs += 1
        self.hit_moves = False
        self._jobs.clear()
        for state in self._states.values():
            state.moment = None

    def ended(self, inferior: gdb.Inferior) -> None:
        """Its process is gone."""
        self.has_run()
        set_convenience("_rank_count", 0)
        if not any(other.pid and other.num != inferior.num for other in gdb.inferiors()):
            self.state().focus.end()
        elif inferior.num in self._states:  # GDB crashes if symbols go now, while others run
            self._states[inferior.num].pid = -1
            self._states[inferior.num].focus.late_libraries.forget()
        if self._selection.inferior == inferior.num:
            self._selection.clear("the process has ended")

    @property
    def is_known(self) -> bool:
        """Whether the selected inferior's process has been looked at; GDB is not asked."""
        inferior = gdb.selected_inferior()
        state = self._states.get(inferior.num)
        return state is not None and inferior.pid != 0 and state.pid == inferior.pid

    def forked(self, path: str) -> None:
        """GDB reads a file of a process, perhaps one that a rank has just forked.

        A step over the fork goes on there, and ends where GDB knows the frame: it needs symbols before there is a stop.
        """
        here = gdb.selected_inferior()
        states = [state for number, state in self._states.items() if number != here.num and state.focus.has_out(path)]
        if not states or not here.pid or connection_kind(here) != "native":
            return
        from pieglobalsfind.jobs import processes

        parent = processes.parent(here.pid)
        for state in states:
            if state.pid == parent and not self.state().focus.paths:
                self.state().focus.inherit(state.focus)

    def executed(self) -> None:
        """The selected inferior's process has executed another program: nothing of its ranks is left."""
        self.has_run()
        number = gdb.selected_inferior().num
        self._states.pop(number).focus.drop()
        if self._selection.inferior == number:
            self._selection.forget("the process has executed another program")

    def settle(self) -> None:
        """After the end of the selected inferior's process: only then may GDB learn what its program is."""
        here = gdb.selected_inferior()
        if not here.pid and here.num in self._states:
            self._states[here.num].focus.restore_program()

    def removed(self, inferior: gdb.Inferior) -> None:
        """GDB has no such inferior any more."""
        self._states.pop(inferior.num, None)
        self._jobs.clear()

    def moment(self) -> ProcessView:
        """Of the selected inferior; raises `RanklensError` if it has no ranks."""
        state = self.state()
        if state.moment is None:
            target = open_inferior()
            state.moment = ProcessView(target, decode(target))
        set_convenience("_rank_count", state.moment.table.rank_count)
        return state.moment

    def job(self) -> JobView:
        """The processes of the selected inferior's job; of the only job if that inferior is in none."""
        here = gdb.selected_inferior()
        state = self.state()
        if here.num in self._jobs and (state.moment is not None or not here.pid):
            return self._jobs[here.num]
        from pieglobalsfind.session.job_view import JobView, ViewedProcess

        if not any(inferior.pid and inferior.num != here.num for inferior in gdb.inferiors()):
            job_view = JobView((ViewedProcess(self.moment(), name_of(here), here.pid),))
        else:
            job_view = self._gathered(here)
        self._jobs[here.num] = job_view
        for number in self._states:
            if any(self._states[number].moment is process.moment for process in job_view.processes):
                self._jobs[number] = job_view
        return job_view

    def _gathered(self, here: gdb.Inferior) -> JobView:
        """The job of one among several inferiors."""
        from pieglobalsfind.session.job_view import JobView, ViewedProcess

        processes: dict[JobKey, list[ViewedProcess]] = {}
        keys: dict[int, JobKey] = {}
        failures: dict[int, str] = {}
        for inferior in (inferior for inferior in gdb.inferiors() if inferior.pid):
            try:
                moment = self._moment_of(inferior)
            except NotVirtualizedError:  # a launcher, for instance
                continue
            except RanklensError as error:
                failures[inferior.num] = f"inferior {inferior.num} is left out: {error.sentence}"
                continue
            key = keys[inferior.num] = job_of(inferior, moment.table)
            processes.setdefault(key, []).append(ViewedProcess(moment, name_of(inferior), inferior.pid))
        if here.num not in keys and len(processes) != 1:
            if processes:
                raise UsageError(f"inferior {here.num} has no ranks, and the others are of several jobs", "select one")
            self.moment()  # says why it has none
        own = keys.get(here.num, next(iter(processes), None))
        strangers = [number for number, key in keys.items() if key != own]
        notes = [
            f"inferior {stranger} runs another job: select it, and rank numbers mean that one" for stranger in strangers
        ]
        return JobView(processes.get(own, ()) if own else (), (*failures.values(), *notes))

    def _moment_of(self, inferior: gdb.Inferior) -> ProcessView:
        if is_running(inferior) and inferior.num != gdb.selected_inferior().num:
            raise TargetError("it runs", "stop it first: interrupt -a")
        check_is_alive(inferior)
        with within(inferior.num):
            return self.moment()

    def enter(self, process: ViewedProcess) -> None:
        """Make the process's inferior the selected one."""
        for number, state in self._states.items():
            if state.moment is process.moment:
                enter(number)


def name_of(inferior: gdb.Inferior) -> str:
    """Return what messages call an inferior."""
    return f"inferior {inferior.num} ({inferior.pid})"


def job_of(inferior: gdb.Inferior, table: RankTable) -> JobKey:
    """What processes of one job have in common: the id in their registries, or else what launched them."""
    if table.job_id:
        return "job", table.job_id
    if table.process_count > 1 and connection_kind(inferior) == "native":
        from pieglobalsfind.jobs import processes, processes_of_launch

        by_pid = processes.processes()
        own = by_pid.get(inferior.pid)
        if own is not None:
            return "launch", own.launch or processes_of_launch.launcher_of(own.pid, by_pid) or own.parent
    return "inferior", inferior.num


def check_is_alive(inferior: gdb.Inferior) -> None:
    """Raises `TargetEndedError` where GDB can't know it yet: it reports one of several deaths at a time.

    From a thread whose registers can't be read GDB finds no way back to an inferior without threads: it looks for the
    selected frame, in whose scope `inferior N` has its number.
    """
    if connection_kind(inferior) == "native":
        LocalInferior(inferior).check_is_alive()


def is_running(inferior: gdb.Inferior) -> bool:
    """Return whether a thread of the inferior runs."""
    return any(thread.is_running() for thread in inferior.threads())


def enter(number: int) -> None:
    """Make an inferior the selected one, without GDB's words about it."""
    if number == gdb.selected_inferior().num:
        return
    with gdb_errors():
        chosen = next((inferior for inferior in gdb.inferiors() if inferior.num == number), None)
        threads = chosen.threads() if chosen is not None else ()
        if threads:
            min(threads, key=lambda thread: thread.num).switch()
        else:
            execute(f"with suppress-cli-notifications on -- inferior {number}")


@contextmanager
def within(number: int) -> Iterator[None]:
    """An inferior is the selected one inside; then the thread and the frame are that were selected before."""
    before = gdb.selected_inferior().num
    if number == before:
        yield
        return
    thread = gdb.selected_thread()
    level = 0
    if thread is not None and not thread.is_running():
        level = gdb.selected_frame().level()
    try:
        enter(number)  # GDB may have gone there before it finds that the process has just died
        yield
    finally:
        if thread is not None and thread.is_valid():
            thread.switch()
            select_level(level)
        else:
            enter(before)


def standing() -> Iterator[gdb.Inferior]:
    """The selected inferior, and others that can be read: while one stop is handled, these may run."""
    here = gdb.selected_inferior().num
    for inferior in gdb.inferiors():
        if inferior.num == here or (inferior.pid and inferior.threads() and not is_running(inferior)):
            yield inferior
