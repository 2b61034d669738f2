"""Ranks as LLDB's threads: what LLDB asks at every stop to fill its thread list.

Takes an `SBProcess`; gives the rows of `thread list`, and the registers of ranks that wait. A rank that runs stands for
its kernel thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from lldbext.breakpoints import lifecycle
from lldbext.commands import other_callers
from lldbext.lldb_api.processor import processor_of, register_info
from lldbext.lldb_api.run_commands import warnings
from lldbext.lldb_api.target import CORE_PLUGINS
from lldbext.selection.session import SESSIONS, Session
from lldbext.threads.kernel_stop_reasons import Standing
from lldbext.threads.thread_ids import tid_of
from pieglobalsfind.debugger.wording import state_text
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import READY, RUNNING, Absent, Rank
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.target import KernelThread

SUSPENDED = "suspended"


class OperatingSystemPlugIn:
    """LLDB makes one for each process."""

    def __init__(self, process: Any) -> None:
        is_new = not SESSIONS.has(process)
        self._session: Session = SESSIONS.of(process)
        self._processor = processor_of(process.GetTarget())
        if is_new:
            with warnings("breakpoints in ranks may be missing"):
                lifecycle.renew(self._session)
        self._is_asked = False
        self._waiting: dict[int, Rank] = {}
        self._registers: dict[int, bytes] = {}  # LLDB asks for them again whenever its modules change

    def create_thread(self, tid: int, context: int) -> None:
        """LLDB asks for threads by address only if a user does."""

    def get_thread_info(self) -> list[dict[str, Any]]:
        """One row for every rank that is to be a thread."""
        if self._is_asked:
            return []  # by a packet that is sent to a stub to find the ranks
        self._is_asked = True
        with warnings("ranks are missing in the thread list"):
            try:
                return list(self._rows(self._session.moment()))
            except (NotVirtualizedError, TargetError):
                return []
            finally:
                self._is_asked = False
        return []

    def _rows(self, moment: ProcessView) -> Iterator[dict[str, Any]]:
        """Those that run come first: LLDB selects the first thread if it has no other reason."""
        session, kernel_threads = self._session, [thread.tid for thread in moment.target.threads()]
        running = [
            rank for rank in moment.table.ranks if rank.state == RUNNING and rank.kernel_thread in kernel_threads
        ]
        numbers = {rank.rank for rank in running}
        waiting = [
            rank for rank in session.threads_of(moment) if rank.rank not in numbers and has_registers(moment, rank)
        ]
        if not session.is_listed(moment):
            session.listed = moment
            lifecycle.settle(session, moment)
            lifecycle.spare_tasks(session, moment)
        if not session.all_are_threads(moment):
            session.tell_once(f"ranklens: {session.threads_text(moment)}", "threads")
        session.follow([rank.rank for rank in running], [rank.rank for rank in waiting])
        session.knows_all = session.knows_all or other_callers.are_there(session.target)
        for rank in (*running, *waiting):
            is_needed = session.knows_all or rank.rank in numbers or rank.rank in session.asked
            if is_needed and rank.rank not in session.passing:
                session.modules.place(moment, rank.rank)
        session.tell_failures()
        covered = self._coverable(moment, running)
        running = [rank for rank in running if rank.kernel_thread in covered]
        session.numbers = {rank.rank: tid_of(rank.rank) for rank in running}
        for rank in running:
            yield row(tid_of(rank.rank), f"rank {rank.rank}: {RUNNING}", core=kernel_threads.index(rank.kernel_thread))
        self._waiting, self._registers = {}, {}
        for rank in waiting:
            name = f"rank {rank.rank}: {waiting_text(moment, rank)}"
            tid = tid_of(rank.rank, 1 + session.turn(rank.rank, name))
            self._waiting[tid], session.numbers[rank.rank] = rank, tid
            yield row(tid, name)

    def _coverable(self, moment: ProcessView, running: Sequence[Rank]) -> frozenset[int]:
        """The kernel threads that these ranks' threads may stand for.

        To be called when no module is moved any more: a breakpoint in it would be another one.
        """
        session, above = self._session, {rank.kernel_thread: rank.rank for rank in running}
        threads = [thread for thread in moment.target.threads() if thread.tid in above]
        places = {thread.tid: Standing(above[thread.tid], pc_of(thread, self._processor)) for thread in threads}
        if not session.lends_memory or session.process.GetPluginName() in CORE_PLUGINS:
            return frozenset(places)  # gdbserver reports one stop at a time
        covered = session.kernel_threads.may_be_covered(places)
        if (
            len(covered) < len(places) and not other_callers.ask_by_functions()
        ):  # who does keeps the thread that stopped
            session.listed = None
        return covered

    def get_register_info(self) -> dict[str, Any]:
        """Which registers a rank has."""
        return register_info(self._processor)

    def get_register_data(self, tid: int) -> bytes:
        """The registers of a rank that waits; what its runtime need not save is 0."""
        if tid not in self._registers:
            self._registers[tid] = self._read(self._waiting.get(tid))
        return self._registers[tid]

    def _read(self, rank: Optional[Rank]) -> bytes:
        count = len(self._processor.register_names)
        nothing = bytes(8 * count)
        if rank is None:
            return nothing  # it ran on a kernel thread that has ended since
        with warnings("a rank has no registers"):
            try:
                registers = self._session.moment().contexts.registers(rank)
            except TargetError:  # the process has ended: LLDB asks for no threads then, but shows those that it had
                return nothing
            return struct.pack(f"<{count}Q", *(registers.get(number, 0) for number in range(count)))
        return nothing


def waiting_text(moment: ProcessView, rank: Rank) -> str:
    """What the name of its thread says of a rank that waits.

    Where the runtime publishes no calls, only its stack tells whether it is blocked: walking all takes too long.
    """
    from pieglobalsfind.mpi.call_from_stack import TIERS  # late: LLDB starts the sooner

    is_known = rank.state != READY or rank.evidence.tier not in TIERS
    return state_text(moment.in_world(rank)) if is_known else SUSPENDED


def pc_of(thread: KernelThread, processor: Processor) -> int:
    """Where a kernel thread stands, 0 if that is not known."""
    return 0 if isinstance(thread.registers, Absent) else thread.registers.get(processor.pc, 0)


def has_registers(moment: ProcessView, rank: Rank) -> bool:
    """Whether a rank waits and its saved registers can be believed."""
    if rank.state == RUNNING or isinstance(rank.context, Absent):
        return False
    try:
        moment.contexts.registers(rank)
    except RanklensError:
        return False
    return True


def row(tid: int, name: str, **more: int) -> dict[str, Any]:
    """What LLDB shows of a thread; `core` is the place of the kernel thread that it stands for."""
    return {"tid": tid, "name": name, "queue": "ranks", "state": "stopped", "stop_reason": "none", **more}
