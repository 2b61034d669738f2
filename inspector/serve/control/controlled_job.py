"""A job whose ranks a debugger controls: it goes on and stops again where a rank meets what is set for it.

Takes what `ServedJob` takes; its processes are traced from the first look to the last one, and breakpoints are in
memory only while it runs. A thread that stops is asked by its stack pointer which rank it runs: another rank than the
one that a breakpoint is for is stepped past it, unseen. One thread does everything, as ptrace(2) wants it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Optional

from pieglobalsfind.decoders.registry.layout import AFTER_UNPACK, BEFORE_PACK, RANK_EXITED
from pieglobalsfind.errors import NotStoppableError, RanklensError, UsageError
from pieglobalsfind.machine.control_lookup import needed_control
from pieglobalsfind.model import RUNNING, Absent
from pieglobalsfind.target import Target
from pieglobalsfind.targets.ptrace import raw_pc_and_stack_pointer, raw_registers
from pieglobalsfind.targets.traced_threads import (
    ENDED,
    EXECUTED,
    FORKED,
    NEW_PROCESS,
    VFORK_DONE,
    ThreadStop,
    TracedThreads,
    set_pc,
)

from ..ranks.rank_process import RankProcess
from ..ranks.served_job import HeldTarget, Moment, ServedJob, is_alive, moment_of
from .breakpoints import Breakpoints
from .rank_places import RankPlaces
from .rank_stops import EXITED, LEFT, SIGNALLED, STEPPED, TRAPPED, WATCHED, Aims, Arrival, RankStop
from .unreported_stops import FATAL, TRAP, arguments_of, is_trivial
from .watchpoints import Watchpoints

BREAK_CODES = (0x80, 1)  # si_code of SIGTRAP (sigaction(2)): SI_KERNEL, TRAP_BRKPT
STEP_SECONDS = 0.05  # that an instruction may take while all others stand; then they go on, too
RANGE_SECONDS = 0.02  # of steps before the debugger is asked again
MOST_PASSING = 1_000  # instructions within a switch between ranks


class ControlledJob(ServedJob):
    """The job under control. Raises as `ServedJob`, and `UsageError` for a job that can't be controlled."""

    def __init__(self, targets: Sequence[Target], name: str) -> None:
        super().__init__(targets, name)
        if not self.is_live:
            raise UsageError("the ranks of a file can't be controlled", "leave --control out")
        self.breakpoints = Breakpoints()
        self.watchpoints = Watchpoints()
        self.attached: Sequence[int] = ()  # ranks that the debugger hears of
        self.is_going = False
        self._threads: Optional[TracedThreads] = None
        self._places = RankPlaces()
        self._aims = Aims()
        self._late: list[RankStop] = []
        self._stepped: Optional[RankProcess] = None  # all that is known of the moment after a step is this rank

    # ---- looking ----

    def _stopped(self, pids: Sequence[int]) -> Moment:
        self._standstill = self._threads = TracedThreads(pids)
        return self._decoded(self._threads)

    @property
    def moment(self) -> Moment:
        """Raises `RanklensError` while the job runs."""
        self._stepped = None
        if self._moment is None and self._threads is not None and not self.is_going:
            self._moment = self._decoded(self._threads)
        return super().moment

    def rank(self, number: int) -> RankProcess:
        """A rank of the moment; raises `RanklensError`."""
        if self._stepped is not None and self._stepped.rank.rank == number:
            return self._stepped
        return super().rank(number)

    def _decoded(self, threads: TracedThreads) -> Moment:
        moment = moment_of([HeldTarget(pid, threads) for pid in self.pids if is_alive(pid)])
        self._places.learn(moment)
        for pid, address in self._places.event_functions.items():
            self.breakpoints.watch_runtime(pid, address)
        return moment

    # ---- going on ----

    def go_on(self) -> Optional[RankStop]:
        """Let the job run; what had happened already is returned instead."""
        if self._late and self._aims.alone is None:
            return self._stand_for(self._late.pop(0))
        assert self._threads is not None
        self._moment = self._stepped = None
        self.breakpoints.put_in(self._places.process_of, self._threads.lenders)
        self.watchpoints.put_in(self._threads.all, self._places.process_of)
        self.is_going = True
        self._threads.resume_all(self._aims.waiting)
        return None

    def _stand_for(self, stop: RankStop) -> RankStop:
        """Stop a thread whose step takes long, too; what it meets comes later."""
        other = self._stand([])
        if other is not None and other.kind != STEPPED:
            self.defer(other)
        return stop

    def look(self) -> Optional[RankStop]:
        """See whether something has stopped; where it concerns a rank that is attached to, all stand still after it."""
        if self._threads is None or not self.is_going:
            return None
        while True:
            stop = self._threads.next_stop()
            if stop is None:
                return None
            if is_trivial(stop) or (stop.event == VFORK_DONE and self._threads.lenders):
                self.watchpoints.put_in([(stop.pid, stop.tid)], self._places.process_of)
                self._threads.resume_all(self._aims.waiting)
                continue
            rank_stop = self._stand([stop]) or self._after_stop()
            if rank_stop is not None:
                return rank_stop

    def _after_stop(self) -> Optional[RankStop]:
        """Go on after a stop that no debugger hears of."""
        arrival, tid = self._aims.arrival, self._aims.arrived
        if arrival is None or tid is None:
            return self.go_on()
        self._aims.arrival = self._aims.arrived = self.breakpoints.awaited = None
        stop = self._step_thread(arrival.rank, tid, range(0))
        if stop is not None:
            self._forget_aims()
        return stop

    def interrupt(self) -> Optional[RankStop]:
        """Have the job stand still; returns what has happened to a rank until then. Raises `NotStoppableError`."""
        assert self._threads is not None
        try:
            stop = self._stand([])
        except NotStoppableError:
            self._threads.resume_all(self._aims.waiting)
            raise
        self._forget_aims()
        return stop

    def _forget_aims(self) -> None:
        self._aims = Aims()
        if self._threads is not None:
            self._threads.leave_steps()
        self.breakpoints.awaited = None

    def _stand(self, stops: list[ThreadStop]) -> Optional[RankStop]:
        assert self._threads is not None
        stops += self._threads.stop_all()
        self.is_going = False
        ours = self._taken_out(stops)
        reported: Optional[RankStop] = None
        for stop in stops:
            for judged in self._judged(stop, stop.tid in ours):
                if reported is None and self._aims.alone in (None, judged.rank):
                    reported = judged
                elif judged.kind != STEPPED:  # a debugger that hears of another stop begins its step anew
                    self.defer(judged, stop.tid)
        if reported is not None:
            self._forget_aims()
        return reported

    def _taken_out(self, stops: list[ThreadStop]) -> set[int]:
        """Leave no instruction of ours in memory; returns the threads that one has stopped."""
        ours = {stop.tid for stop in stops if self._is_backed_up(stop)}  # while they are still known
        for stop in stops:
            if stop.event == FORKED:
                self.breakpoints.take_out_of_child(stop.pid, stop.message)
        self.breakpoints.take_out()
        return ours

    def defer(self, stop: RankStop, tid: int = 0) -> None:
        """Tell of a stop again once the job is to go on; a thread at a breakpoint meets it again by itself."""
        if stop.kind != TRAPPED:
            self._late.append(stop)
        elif self._aims.alone is not None:
            self._aims.waiting.add(tid)

    def _is_backed_up(self, stop: ThreadStop) -> bool:
        """Have a thread that one of our instructions has stopped execute what stood there."""
        assert self._threads is not None
        raw = raw_registers(stop.tid) if stop.signal == TRAP and stop.code in BREAK_CODES else None
        pc = raw_pc_and_stack_pointer(raw)[0] - needed_control().past_breakpoint if raw is not None else 0
        if raw is None or not self.breakpoints.stands_at(stop.pid, pc):
            return False
        set_pc(stop.tid, pc)
        self._threads.deliver(stop.tid, 0)
        return True

    # ---- why it has stopped ----

    def _judged(self, stop: ThreadStop, is_ours: bool) -> list[RankStop]:
        """What a debugger hears of it: nothing or one thing. `is_ours`: an instruction of ours has stopped it."""
        assert self._threads is not None
        if stop.event:
            return self._after_event(stop)
        rank = self._places.runner(stop.pid, stop.tid)
        watched = self._touched(stop)
        if is_ours:
            return self._after_break(stop, rank)
        if stop.signal == TRAP and stop.code not in BREAK_CODES:
            self._threads.deliver(stop.tid, 0)
            if watched:
                return watched[:1]
            if self._aims.stepping is not None and self._aims.stepping[1] == stop.tid:
                return [RankStop(self._aims.stepping[0], STEPPED, TRAP)]
            return []
        return self._after_signal(stop, rank)

    def _touched(self, stop: ThreadStop) -> list[RankStop]:
        watches = self.watchpoints.hit(stop.pid, stop.tid, self._places.process_of)
        return [RankStop(watch.rank, WATCHED, TRAP, watch) for watch in watches]

    def _after_signal(self, stop: ThreadStop, rank: Optional[int]) -> list[RankStop]:
        assert self._threads is not None
        if stop.signal not in (*FATAL, TRAP) or rank not in self.attached or rank is None:
            return []
        self._threads.deliver(stop.tid, 0)
        return [RankStop(rank, SIGNALLED, stop.signal)]

    def _after_break(self, stop: ThreadStop, rank: Optional[int]) -> list[RankStop]:
        raw = raw_registers(stop.tid)
        pc = raw_pc_and_stack_pointer(raw)[0] if raw is not None else 0
        if raw is not None and self.breakpoints.is_of_runtime(stop.pid, pc):
            return [*self._after_runtime_event(stop.pid, *arguments_of(raw, self.processor)), *self._pass(stop)]
        if rank is not None and self.breakpoints.is_wanted(rank, pc, stop.pid):
            return [RankStop(rank, TRAPPED, TRAP)]
        if rank is not None and self._aims.arrival is not None and self.breakpoints.awaited == (rank, pc):
            if not self._aims.arrival.then_step:
                return [RankStop(rank, STEPPED, TRAP)]
            self._aims.arrived = stop.tid
            return []
        return self._pass(stop)

    def _pass(self, stop: ThreadStop) -> list[RankStop]:
        """Step a thread past a breakpoint that is not for the rank that it runs: that may be the step of a debugger."""
        assert self._threads is not None
        after = self._threads.step(stop.tid, STEP_SECONDS)
        return [] if after is None else self._judged(after, is_ours=False)

    def _after_runtime_event(self, pid: int, kind: int, rank: int) -> list[RankStop]:
        self.breakpoints.follow(kind, pid, rank)
        self._moment = None
        with suppress(RanklensError):
            process = self.moment.rank(rank) if rank >= 0 else None
            if process is None:
                return []
            if kind == AFTER_UNPACK:
                self._places.process_of[rank] = pid
                if self._aims.arrival is not None and self._aims.arrival.rank == rank:
                    self.breakpoints.awaited = rank, process.pc
            if rank in self.attached and kind == RANK_EXITED:
                return [RankStop(rank, EXITED, process.rank.exit_status or 0)]
            if rank in self.attached and kind == BEFORE_PACK and not self.moment.has_process(process.rank.process):
                return [RankStop(rank, LEFT, process.rank.process)]
        return []

    def process_of(self, rank: int) -> Optional[int]:
        """The pid of the process where a rank is, as far as is known."""
        return self._places.process_of.get(rank)

    def _after_event(self, stop: ThreadStop) -> list[RankStop]:
        """New processes go their way without our instructions."""
        assert self._threads is not None
        if stop.event in NEW_PROCESS:
            self._threads.let_go_of_child(stop.message)
        elif stop.event in (EXECUTED, ENDED):
            self.breakpoints.close(stop.pid)
            if stop.event == EXECUTED:
                self._threads.let_go_of(stop.pid)
        return []

    # ---- steps ----

    def step(self, number: int, within: range, alone: bool) -> Optional[RankStop]:
        """Have a rank take a step, or steps as long as it is `within`; None if the job runs until it has.

        `alone`: its debugger does not expect to hear of another rank.
        """
        self._aims.alone = number if alone else None
        rank = self.rank(number)
        if rank.rank.state == RUNNING and rank.rank.kernel_thread:
            stop = self._step_thread(number, rank.rank.kernel_thread, within)
            place = self._places.process_of[number], rank.rank.kernel_thread
            if stop is not None and stop.rank == number and self._places.runner(*place) == number:
                self._stepped = rank.stepped()
        else:
            stop = self._await(Arrival(number, rank.pc, then_step=True))
        if stop is not None:
            self._forget_aims()
        return stop

    def _step_thread(self, number: int, tid: int, within: range) -> Optional[RankStop]:
        assert self._threads is not None
        pid = self._places.process_of[number]
        deadline = time.monotonic() + RANGE_SECONDS
        self._moment = None
        self.watchpoints.put_in(self._threads.all, self._places.process_of)
        while True:
            stop = self._threads.step(tid, STEP_SECONDS)
            if stop is None:
                self._aims.stepping = number, tid
                return self.go_on()
            if stop.event:
                self._after_event(stop)
                if stop.event == ENDED:
                    return self.go_on()
                continue
            watched = self._touched(stop)
            if watched:
                self._threads.deliver(tid, 0)
                return watched[0]
            if stop.signal != TRAP:
                stops = self._after_signal(stop, number)
                if stops:
                    return stops[0]
                continue  # into the signal's handler
            self._threads.deliver(tid, 0)
            if self._places.runner(pid, tid) != number:
                return self._switched_out(number, tid)
            raw = raw_registers(tid)
            pc = raw_pc_and_stack_pointer(raw)[0] if raw is not None else 0
            if self.breakpoints.is_of_runtime(pid, pc) and raw is not None:
                stops = self._after_runtime_event(pid, *arguments_of(raw, self.processor))
                if stops:
                    return stops[0]
            if pc not in within or self.breakpoints.is_wanted(number, pc, pid) or time.monotonic() > deadline:
                return RankStop(number, STEPPED, TRAP)

    def _switched_out(self, number: int, tid: int) -> Optional[RankStop]:
        """The rank has given up the processor in the midst of a step: the step ends where it goes on."""
        self._moment = None
        assert self._threads is not None
        for _ in range(MOST_PASSING):
            rank = self.moment.rank(number)
            if rank.rank.state != RUNNING and not isinstance(rank.registers, Absent):
                return self._await(Arrival(number, rank.pc, then_step=False))
            stop = self._threads.step(tid, STEP_SECONDS)
            self._moment = None
            if stop is None or stop.event == ENDED:
                self._aims.stepping = number, tid
                return self.go_on()
            if stop.event:
                self._after_event(stop)
            elif stop.signal == TRAP:
                self._threads.deliver(tid, 0)
        return RankStop(number, STEPPED, TRAP)  # it is in a signal's handler, on another stack

    def _await(self, arrival: Arrival) -> Optional[RankStop]:
        """Let the job run until a rank goes on."""
        self._aims.arrival = arrival
        self.breakpoints.awaited = arrival.rank, arrival.address
        return self.go_on()

    # ---- the end ----

    def deliver(self, number: int, signal: int) -> None:
        """A rank that runs gets a signal when the job goes on."""
        rank = self.moment.rank(number).rank
        if self._threads is not None and rank.state == RUNNING and rank.kernel_thread:
            self._threads.deliver(rank.kernel_thread, signal)

    def forget(self, rank: int) -> None:
        """Nothing is set for a rank any more."""
        self.breakpoints.forget(rank)
        self.watchpoints.forget(rank)
        self._late = [stop for stop in self._late if stop.rank != rank]

    def _release(self) -> None:
        """Take everything out before any thread goes on by itself."""
        threads = self._threads
        if threads is not None:
            stops: list[ThreadStop] = []
            with suppress(RanklensError):
                stops = threads.stop_all()
            stops += iter(threads.next_stop, None)  # of the others, where one does not stop
            ours = self._taken_out(stops)
            for stop in stops:
                if stop.event:
                    self._after_event(stop)
                elif stop.signal == TRAP and stop.code not in BREAK_CODES and stop.tid not in ours:
                    threads.deliver(stop.tid, 0)
            self.breakpoints.clear()
            self.watchpoints.clear()
            self.watchpoints.put_in(threads.all, {})
        self._threads = None
        self.is_going = False
        self._forget_aims()
        self._late.clear()
        super()._release()
