"""What is kept of one process: the rank table of the current stop, the modules of its ranks, and what was asked for.

Takes an `SBProcess`; a stop makes a new moment, a new process a new session. Shared by commands, the plugin that makes
threads of ranks, and breakpoints, because LLDB calls each of them on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional

from lldbext.lldb_api.frame_description import Describer
from lldbext.lldb_api.remote_target import RemoteProcess, lends_memory
from lldbext.lldb_api.target import check_is_held, open_process
from lldbext.symbols.modules import Modules
from lldbext.threads.kernel_stop_reasons import KernelThreads
from lldbext.threads.thread_breakpoints import ThreadBreakpoints
from lldbext.threads.thread_ids import rank_of_tid
from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import events
from pieglobalsfind.decoders.registry.live_state import without
from pieglobalsfind.errors import NotVirtualizedError, TargetError
from pieglobalsfind.model import RUNNING, Rank
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.session.process_view import ProcessView

MOST_THREADS = 64  # ranks up to which all of them become threads
IN_PASSING = 8  # ranks that become threads together: LLDB asks for every thread's registers when its modules change
PLUGIN = Path(__file__).resolve().parents[1] / "plugin" / "ranklens_os_plugin.py"
SETTING = "target.process.python-os-plugin-path"


class Session:
    """All that belongs to one process."""

    def __init__(self, process: Any, thread_breakpoints: ThreadBreakpoints) -> None:
        self.process = process
        self.target = process.GetTarget()
        self.modules = Modules(self.target)
        self.thread_breakpoints = thread_breakpoints
        self.kernel_threads = KernelThreads(process, thread_breakpoints)
        self.calls = events.Calls()
        self.left_out: set[int] = set()  # addresses in originals where breakpoints were, before copies were made
        self.watches_return = False  # of a call of AMPI's by which a rank has arrived
        self.leaving: set[int] = set()  # ranks that are being packed: gone, whatever their records say until then
        self.stepped_away: set[int] = set()  # ranks that have left in the middle of a step
        self.asked: dict[int, None] = {}
        self.knows_all = False  # whether LLDB knows the code of all ranks that are threads
        self.passing: tuple[int, ...] = ()  # ranks that are threads until the command ends
        self._asked_in_command = False
        self._frame = (0, 0)  # the selected thread's tid, and its selected frame's level
        self.chosen: Optional[int] = None
        self.none_since: Optional[tuple[int, int]] = None
        self.numbers: dict[int, int] = {}  # the tids of the ranks in LLDB's list
        self.listed: Optional[ProcessView] = None  # the moment when LLDB asked for threads
        self.settled = False  # whether the events' breakpoint stands at an address
        self._lends_memory: Optional[bool] = None
        self._printed: set[str] = set()
        self._turns: dict[int, tuple[str, int]] = {}
        self._moment: Optional[ProcessView] = None
        self._describer: Optional[Describer] = None
        self._stop = -1

    def moment(self) -> ProcessView:
        """The rank table of this stop; raises `NotVirtualizedError` and `TargetError`."""
        stop = self.process.GetStopID()
        check_is_held(self.process)  # a process that is detached keeps the number of its last stop
        if self._moment is None or stop != self._stop:
            target = open_process(self.process)
            self._moment, self._stop, self.chosen = (
                ProcessView(target, without(decode(target), self.leaving)),
                stop,
                None,
            )
            self._describer = None
            if isinstance(target, RemoteProcess):
                self.modules.renew()
        return self._moment

    @property
    def lends_memory(self) -> bool:
        """Whether expressions can be evaluated without a call in the process."""
        if self._lends_memory is None:
            self._lends_memory = lends_memory(self.process)
        return self._lends_memory

    def describer_of(self, moment: ProcessView) -> Describer:
        """What describes frames; it knows the places of this stop."""
        if self._describer is None:
            self._describer = Describer(moment)
        return self._describer

    def turn(self, rank: int, name: str) -> int:
        """0 or 1, the other one each time that a rank has another name."""
        before, number = self._turns.get(rank, (name, 0))
        now = number if before == name else 1 - number
        self._turns[rank] = name, now
        return now

    def forget_moment(self) -> None:
        """The runtime has changed its ranks while LLDB counts no stop."""
        self._moment = None

    def want_none(self) -> None:
        """No rank is to be selected until another thread is, or the process runs."""
        self.none_since = self._place()

    def wants_none(self) -> bool:
        """Return whether the user asked for no rank at this stop."""
        return self.none_since is not None and self.none_since == self._place()

    def _place(self) -> tuple[int, int]:
        return self.process.GetStopID(), self.process.GetSelectedThread().GetThreadID()

    def follow(self, running: list[int], waiting: list[int]) -> None:
        """After a stop: symbols mean a rank that runs, or one that waits where none runs; never the originals."""
        candidates = running or waiting
        if candidates and self.modules.focused not in candidates and not self.wants_none():
            self.modules.focus(self.moment(), candidates[0])

    def all_are_threads(self, moment: ProcessView) -> bool:
        """Return whether every rank is a thread of LLDB's."""
        return len(moment.table.ranks) <= SESSIONS.most_threads

    def threads_text(self, moment: ProcessView) -> str:
        """Which ranks that wait are in LLDB's list."""
        count, most = len(moment.table.ranks), SESSIONS.most_threads
        if self.all_are_threads(moment):
            return f"All {count} ranks are threads (up to {most} would be)"
        asked = compact(self.asked) or "none"
        return (
            f"Of {count} ranks only those that run or are asked for are threads (asked for: {asked}); "
            f"`rank threads SET` asks for more, `rank threads --most {count}` for all"
        )

    def tell_once(self, text: str, about: str = "") -> None:
        """Something that the user should know, once per process (and matter, if one is named)."""
        if (about or text) not in self._printed:
            self._printed.add(about or text)
            print(text)

    def threads_of(self, moment: ProcessView) -> Sequence[Rank]:
        """The ranks that are to be in LLDB's thread list if they wait."""
        if self.all_are_threads(moment):
            return moment.table.ranks
        wanted = {*self.asked, *self.passing}
        return [rank for rank in moment.table.ranks if rank.rank in wanted]

    def is_listed(self, moment: ProcessView) -> bool:
        """Whether LLDB has asked for this moment's threads."""
        return self.listed is moment

    def ask_for(self, rank: int) -> None:
        """Let a rank become a thread. The first of a command stays one; the next ones are threads until it ends.

        The selected rank stays one in any case.
        """
        most = max(SESSIONS.most_threads, 1)
        selected = self.process.GetSelectedThread().GetThreadID()
        if self._asked_in_command:
            self.passing = tuple(other.rank for other in self.moment().table.ranks if other.rank >= rank)[:IN_PASSING]
        else:
            self._asked_in_command = True
            self.asked.pop(rank, None)
            self.asked[rank] = None
            for number in list(self.asked)[:-most]:
                if number != rank_of_tid(selected):
                    del self.asked[number]
        self.list_threads()
        self.process.SetSelectedThread(self.process.GetThreadByID(selected))

    def let_stay(self, rank: int) -> None:
        """LLDB is to know the code of the first rank that a command is about from now on."""
        if not self._asked_in_command:
            self._asked_in_command = True
            self.asked[rank] = None
            self.modules.place(self.moment(), rank)

    def know_all(self) -> None:
        """Let LLDB know the code of all ranks that are threads: something may be about any of them."""
        if self.knows_all or self.modules.is_visiting:
            return
        self.knows_all = True
        for rank in tuple(self.numbers):
            self.modules.place(self.moment(), rank)
        self.tell_failures()

    def tell_failures(self) -> None:
        """Print once what failed with modules."""
        for failure in self.modules.failures:
            self.tell_once(f"ranklens: {failure}")

    def keep_frame(self) -> None:
        """Let the selected frame be so when the command ends: LLDB forgets it when its modules change."""
        thread = self.process.GetSelectedThread()
        self._frame = thread.GetThreadID(), thread.GetSelectedFrame().GetFrameID()

    def end_command(self) -> None:
        """Everything is where it was before a command visited ranks."""
        self._asked_in_command = False
        if self.passing or self.modules.is_visiting:
            self._leave()
        tid, level = self._frame
        thread = self.process.GetSelectedThread()
        if thread.IsValid() and thread.GetThreadID() == tid and thread.GetSelectedFrame().GetFrameID() != level:
            thread.SetSelectedFrame(level)

    def _leave(self) -> None:
        selected = self.process.GetSelectedThread().GetThreadID()
        self.modules.settle()
        if self.passing:
            self.passing = ()
            self.list_threads()
            self.process.SetSelectedThread(self.process.GetThreadByID(selected))

    def meet_kernel_threads(self) -> None:
        """Keep those in LLDB's list at a stop that need not be one for the user."""
        if not self.kernel_threads.are_met():
            busy = set()
            with suppress(NotVirtualizedError, TargetError):
                busy = {rank.kernel_thread for rank in self.moment().table.ranks if rank.state == RUNNING}
            self.kernel_threads.meet(busy)

    def list_threads(self) -> None:
        """Have LLDB ask for its list of threads again: it does when the plugin's path is set."""
        self.kernel_threads.meet()
        debugger = self.process.GetTarget().GetDebugger()
        debugger.HandleCommand(f'settings set {SETTING} "{PLUGIN}"')


class Sessions:
    """Every process's session; those of processes that are gone are dropped."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self.most_threads = MOST_THREADS

    def has(self, process: Any) -> bool:
        """Whether anything is known of a process."""
        return process.GetUniqueID() in self._sessions

    def of(self, process: Any) -> Session:
        """The session of a process, made if there is none."""
        number = process.GetUniqueID()
        session = self._sessions.get(number)
        if session is None:
            target = process.GetTarget()
            thread_breakpoints = self._drop_others(target) or ThreadBreakpoints(target)
            session = self._sessions[number] = Session(process, thread_breakpoints)
        return session

    def _drop_others(self, target: Any) -> Optional[ThreadBreakpoints]:
        """A target has one process at a time: what belonged to the one before is gone, but for LLDB's breakpoints."""
        kept = None
        for number, session in list(self._sessions.items()):
            if session.target == target or not session.target.IsValid():
                kept = session.thread_breakpoints if session.target == target else kept
                session.modules.remove()
                del self._sessions[number]
        return kept


SESSIONS = Sessions()  # LLDB makes the plugin by itself, with nothing but the process
