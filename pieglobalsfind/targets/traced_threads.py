"""Threads of some processes under control: all or one of them resumed, one stepped, all stopped again.

Takes pids; says why a thread has stopped. It knows nothing of ranks and breakpoints, and writes nothing but program
counters and debug registers, as `machine/control.py` describes them. Source: ptrace(2), <sys/ptrace.h>.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from pieglobalsfind.errors import NotStoppableError
from pieglobalsfind.machine.control_lookup import needed_control
from pieglobalsfind.targets.ptrace import (
    DETACH,
    EVENT_STOP,
    GETREGSET,
    INTERRUPT,
    NAP,
    PATIENCE,
    POLLS,
    STUCK,
    WALL,
    Standstill,
    has_exited,
    is_in_the_kernel,
    is_waiting,
    ptrace,
    ptrace_value,
)

PEEK_USER, POKE_USER, CONT, SINGLE_STEP = 3, 6, 7, 9
SET_OPTIONS, GET_EVENT_MESSAGE, GET_SIGNAL_INFO, LISTEN = 0x4200, 0x4201, 0x4202, 0x4208
FORKED, VFORKED, CLONED, EXECUTED, VFORK_DONE = 1, 2, 3, 4, 5  # PTRACE_EVENT_*
OPTIONS = sum(1 << event for event in (FORKED, VFORKED, CLONED, EXECUTED, VFORK_DONE))
NEW_PROCESS = (FORKED, VFORKED)
SIGNAL_INFO_SIZE, CODE_AT = 128, 8  # siginfo_t
NT_PRFPREG = 2
ENDED = -1  # in place of an event
TRAP = 5  # SIGTRAP


@dataclass(frozen=True)
class ThreadStop:
    """Why a thread of a process has stopped.

    `signal` is Linux's number, `code` the si_code with it. `event` is a PTRACE_EVENT_*, 0 or `ENDED`, `message` what
    the kernel says with it.
    """

    pid: int
    tid: int
    signal: int = 0
    code: int = 0
    event: int = 0
    message: int = 0


class TracedThreads(Standstill):
    """All threads of some processes, those that they make later included; stopped at first. Raises as `Standstill`."""

    def __init__(self, pids: Sequence[int]) -> None:
        super().__init__(pids)
        self._running = set[int]()
        self._process_of: dict[int, int] = {}
        self._group_stopped = set[int]()
        self._strangers = set[int]()  # new processes that have stopped before their parents' events
        self._early = set[int]()  # new threads that have
        self._stepping = set[int]()  # those that step, and wait in the kernel
        self._unheard: list[ThreadStop] = []  # what had happened when a thread did not stop
        self._lending = dict[int, int]()  # by thread, the process whose memory its child has (vfork(2))
        for pid in pids:
            for tid in self.threads(pid):
                self._process_of[tid] = pid
                ptrace(SET_OPTIONS, tid, 0, OPTIONS)

    @property
    def all(self) -> tuple[tuple[int, int], ...]:
        """(process, thread) of each."""
        return tuple((pid, tid) for pid in self._signals for tid in self.threads(pid))

    @property
    def lenders(self) -> frozenset[int]:
        """The processes whose memory a child has until it executes a program, or ends."""
        return frozenset(self._lending.values())

    # ---- going on ----

    def resume(self, tid: int) -> None:
        """Let a stopped thread go on, or with its step; it gets the signal that it was about to get."""
        threads = self._signals[self._process_of[tid]]
        signal, threads[tid] = threads[tid], 0
        request = SINGLE_STEP if tid in self._stepping else LISTEN if tid in self._group_stopped else CONT
        self._group_stopped.discard(tid)
        self._running.add(tid)
        ptrace(request, tid, 0, signal)  # it fails for a thread that has been killed, which `next_stop` reports

    def resume_all(self, kept: Container[int]) -> None:
        """Let every stopped thread go on, except some.

        While a child has the memory of a process no breakpoint may be in it: only threads that wait for a child do.
        """
        settled = self._running.union(stop.tid for stop in self._unheard)
        for _, tid in self.all:
            if tid not in settled and (tid in self._lending if self._lending else tid not in kept):
                self.resume(tid)

    def deliver(self, tid: int, signal: int) -> None:
        """What a stopped thread gets when it goes on: a signal, or 0."""
        self._signals[self._process_of[tid]][tid] = signal

    # ---- stopping ----

    def next_stop(self) -> Optional[ThreadStop]:
        """A thread that has stopped, or a process that has ended; None if there is nothing new."""
        if self._unheard:
            return self._unheard.pop(0)
        while True:
            try:
                tid, status = os.waitpid(-1, WALL | os.WNOHANG)
            except ChildProcessError:
                self._running.clear()
                return None
            if not tid:
                return None
            stop = self._noted(tid, status)
            if stop is not None:
                return stop

    def _stop_of(self, tid: int) -> Optional[ThreadStop]:
        """One thread's next stop; those of others are left to `next_stop`."""
        try:
            stopped, status = os.waitpid(tid, WALL | os.WNOHANG)
        except ChildProcessError:
            return self._ended(tid) or ThreadStop(0, tid, event=ENDED)
        return self._noted(tid, status) or ThreadStop(0, tid, event=ENDED) if stopped else None

    def _noted(self, tid: int, status: int) -> Optional[ThreadStop]:
        self._running.discard(tid)
        if not os.WIFSTOPPED(status):
            return self._ended(tid)
        pid = self._process_of.get(tid) or self._adopted(tid)
        if not pid:
            return None
        event, signal = status >> 16, os.WSTOPSIG(status)
        if event == EVENT_STOP:
            if signal != 5:
                self._group_stopped.add(tid)
            return ThreadStop(pid, tid, event=event)
        if event:
            message = _event_message(tid)
            if event == CLONED:
                self._expect(pid, message)
            elif event == VFORKED:
                self._lending[tid] = pid
            elif event == VFORK_DONE:
                self._lending.pop(tid, None)
            return ThreadStop(pid, tid, event=event, message=message)
        self._signals[pid][tid] = signal
        if signal == TRAP:
            self._stepping.discard(tid)
        return ThreadStop(pid, tid, signal, _signal_code(tid))

    def _expect(self, pid: int, tid: int) -> None:
        """A new thread runs until it stops by itself; one that has stopped already may even have ended meanwhile."""
        if tid in self._early:
            self._early.discard(tid)
            return
        self._process_of[tid] = pid
        self._signals[pid][tid] = 0
        self._running.add(tid)

    def _ended(self, tid: int) -> Optional[ThreadStop]:
        pid = self._process_of.pop(tid, 0)
        self._running.discard(tid)
        self._stepping.discard(tid)
        self._lending.pop(tid, None)
        self._signals.get(pid, {}).pop(tid, None)
        return ThreadStop(pid, tid, event=ENDED) if tid == pid else None

    def _adopted(self, tid: int) -> int:
        """The process of a new thread, 0 for a new process."""
        pid = _thread_group(tid)
        if pid not in self._signals:
            self._strangers.add(tid)
            return 0
        self._process_of[tid] = pid
        self._signals[pid][tid] = 0
        self._early.add(tid)
        return pid

    def stop_all(self) -> list[ThreadStop]:
        """Stop every thread; returns what else has happened until then. Raises `NotStoppableError`."""
        stops: list[ThreadStop] = []
        for tid in tuple(self._running):
            ptrace(INTERRUPT, tid, 0, 0)
        started = time.monotonic()
        while self._running:
            stop = self.next_stop()
            if stop is None:
                try:
                    self._check_progress(time.monotonic() - started)
                except NotStoppableError:
                    self._unheard += stops
                    raise
                time.sleep(NAP)
            elif stop.event != EVENT_STOP:
                stops.append(stop)
            elif _is_trapped(stop.tid):
                self.resume(stop.tid)  # it reports the trap before it executes anything
        return stops

    def _check_progress(self, seconds: float) -> None:
        """Raise `NotStoppableError` if a thread has not stopped for so long."""
        for tid in self._running:
            if seconds > STUCK and tid in self._lending:
                raise NotStoppableError(
                    f"thread {tid} does not stop", "it waits for a child that has not executed a program yet"
                )
            if seconds > PATIENCE or (seconds > STUCK and is_in_the_kernel(tid)):
                raise NotStoppableError(f"thread {tid} does not stop", "it may be stuck in the kernel")

    def step(self, tid: int, seconds: float) -> Optional[ThreadStop]:
        """Have one thread execute one instruction while the others stand.

        None if it waits in the kernel for longer: `resume` goes on with the step. A thread that only waits for a
        processor is waited for.
        """
        self._stepping.add(tid)
        self.resume(tid)
        started, polls = time.monotonic(), 0
        while True:
            polls += 1
            if polls > POLLS:
                time.sleep(NAP)
            stop = self._stop_of(tid)
            if stop is not None:
                if stop.event != EVENT_STOP:
                    return stop
                self.resume(tid)  # it was interrupted once more than it has stopped
            elif time.monotonic() > started + seconds:
                if has_exited(tid):
                    return ThreadStop(self._process_of[tid], tid, event=ENDED)  # its process's other threads follow
                if is_waiting(tid):
                    return None

    def leave_steps(self) -> None:
        """Have threads whose step is under way go on without it."""
        self._stepping.clear()

    # ---- new processes ----

    def let_go_of_child(self, pid: int) -> None:
        """Of a process that one of ours has made: it stops once, and is not ours."""
        if pid not in self._strangers:
            try:
                os.waitpid(pid, WALL)
            except ChildProcessError:
                return
        self._strangers.discard(pid)
        ptrace(DETACH, pid, 0, 0)

    def let_go_of(self, pid: int) -> None:
        """Of one of the processes, which has executed another program."""
        for tid in self.threads(pid):
            ptrace(DETACH, tid, 0, 0)
            self._process_of.pop(tid, None)
            self._running.discard(tid)
            self._stepping.discard(tid)
            self._lending.pop(tid, None)
        self._signals[pid].clear()


def set_pc(tid: int, pc: int) -> None:
    """Have a stopped thread go on elsewhere."""
    ptrace(POKE_USER, tid, needed_control().pc_at, pc)


def set_debug_register(tid: int, number: int, value: int) -> bool:
    """Whether the kernel takes it."""
    return ptrace(POKE_USER, tid, needed_control().debug_registers_at + 8 * number, value) == 0


def debug_register(tid: int, number: int) -> int:
    """0 if it can't be read."""
    return max(ptrace_value(PEEK_USER, tid, needed_control().debug_registers_at + 8 * number), 0)


def floating_point_state(tid: int, size: int) -> Optional[bytes]:
    """A stopped thread's NT_PRFPREG, None if it can't be read."""
    buffer = ctypes.create_string_buffer(size)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), len(buffer))
    return None if ptrace(GETREGSET, tid, NT_PRFPREG, ctypes.addressof(vector)) else buffer.raw


def _event_message(tid: int) -> int:
    word = ctypes.c_ulong()
    ptrace(GET_EVENT_MESSAGE, tid, 0, ctypes.addressof(word))
    return word.value


def _signal_code(tid: int) -> int:
    buffer = ctypes.create_string_buffer(SIGNAL_INFO_SIZE)
    if ptrace(GET_SIGNAL_INFO, tid, 0, ctypes.addressof(buffer)):
        return 0
    code: int = struct.unpack_from("<i", buffer, CODE_AT)[0]
    return code


def _is_trapped(tid: int) -> bool:
    """Whether a thread has executed a breakpoint's instruction, and was interrupted before it could report that."""
    words = (line.split() for line in _status_lines(tid) if line.startswith(("SigPnd:", "SigBlk:")))
    signals = {name: int(mask, 16) for name, mask in words}
    return bool(signals.get("SigPnd:", 0) & ~signals.get("SigBlk:", 0) & 1 << (TRAP - 1))


def _thread_group(tid: int) -> int:
    """The process of a thread, 0 if it has ended."""
    return next((int(line.split()[1]) for line in _status_lines(tid) if line.startswith("Tgid:")), 0)


def _status_lines(tid: int) -> Iterator[str]:
    try:
        yield from Path(f"/proc/{tid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return
