"""Stops every thread of some processes by ptrace(2), without a signal, and lets them continue.

Takes pids. The kernel detaches all threads when this process ends in any way, killed included: PTRACE_SEIZE without
options. It reads registers, and neither memory nor anything else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Union

from pieglobalsfind.errors import NotStoppableError, TargetEndedError
from pieglobalsfind.machine.lookup import of_kernel
from pieglobalsfind.model import Absent

# <sys/ptrace.h>
GETREGSET, SEIZE, INTERRUPT, DETACH = 0x4204, 0x4206, 0x4207, 17
EVENT_STOP = 128
NT_PRSTATUS = 1
WALL = 0x40000000  # __WALL of waitpid(2): threads too
REGISTERS_SIZE = 64 * 8  # room for the kernel's general registers on any processor

STUCK = 5.0  # seconds that a thread may be in the kernel before it stops
PATIENCE = 60.0  # seconds until every thread has to stand still: it can't before it gets a processor
TURN, PAUSE_OF_OTHERS = 1.0, 0.001  # seconds until another pause must be over, and between two tries
POLLS = 20  # a thread that has a processor stops in microseconds
NAP = 0.00005  # seconds
REST = 0.001  # seconds; a process that has slept keeps the processor longer than one that has just computed
RUNS, ENDED = -1, -2  # in place of a stopped thread's signal
HIGHEST = -20  # nice value, setpriority(2)


@contextmanager
def highest() -> Iterator[bool]:
    """Give the calling thread the highest priority of ordinary scheduling inside; yields whether it has it."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if before == HIGHEST:
        yield True
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, HIGHEST)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


class Standstill:
    """All threads of some processes, stopped from the construction to `release`; a process that has ended has none.

    `began` is the last known moment when no thread stood still yet (`time.monotonic`), `ended` the last known moment
    when a thread still stood still, 0.0 before `release`. Raises `NotStoppableError` if one of
    them may not be traced, `TargetEndedError` if all have ended.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._signals: dict[int, dict[int, int]] = {pid: {} for pid in pids}  # by thread: one that it is about to get
        self._deadline = time.monotonic() + PATIENCE
        self.asked: dict[int, float] = {}  # by process: when the last of its threads was asked to stop
        self.began = self.ended = 0.0
        free = time.monotonic() + TURN
        while not self._is_ours():
            self.release()
            if time.monotonic() > free:
                raise _not_traceable(pids)
            time.sleep(PAUSE_OF_OTHERS)
        try:
            if sum(map(len, self._signals.values())) > 1:
                time.sleep(REST)
            with highest():
                self._stop_all()
        except BaseException:
            self.release()
            raise
        if not any(self._signals.values()):
            raise TargetEndedError(f"process {pids[0]} has ended")

    @property
    def skew(self) -> float:
        """Return how many seconds the last process ran on after the first one.

        After the request a thread runs nothing more of the program (ptrace(2), PTRACE_INTERRUPT): on a processor it is
        interrupted at once, else it stops before it gets back to the program.
        """
        return max(self.asked.values(), default=0.0) - min(self.asked.values(), default=0.0)

    def threads(self, pid: int) -> tuple[int, ...]:
        """The threads of one of the processes, ascending."""
        return tuple(sorted(self._signals[pid]))

    def release(self) -> None:
        """Let every thread continue; a signal that it was about to get is delivered."""
        for threads in self._signals.values():
            while threads:
                tid, signal = threads.popitem()
                self.ended = time.monotonic()
                if ptrace(DETACH, tid, 0, signal):
                    _release_running(tid)

    def _is_ours(self) -> bool:
        """Seize all threads; False if something else traces one: it may be another pause, which is over soon."""
        return all(self._seize(pid, self._new_threads(pid)) for pid in self._signals)

    def _stop_all(self) -> None:
        """Until no thread is left that runs: those that run may make new ones meanwhile."""
        new = {pid: list(threads) for pid, threads in self._signals.items()}
        while any(new.values()):
            waiting = {tid: (pid, time.monotonic()) for pid, tids in new.items() for tid in tids}
            for tid, (pid, _) in waiting.items():
                ptrace(INTERRUPT, tid, 0, 0)
                self.asked[pid] = time.monotonic()
            self._wait_for(waiting)
            new = {pid: self._new_threads(pid) for pid in self._signals}
            if not all(self._seize(pid, tids) for pid, tids in new.items()):
                raise _not_traceable(list(new))

    def _new_threads(self, pid: int) -> list[int]:
        """Those that are not seized yet; none of a process that has ended."""
        try:
            return [tid for tid in task_ids(pid) if tid not in self._signals[pid] and not has_exited(tid)]
        except TargetEndedError:
            return []

    def _seize(self, pid: int, tids: Sequence[int]) -> bool:
        """Whether all of them could be, or have ended meanwhile."""
        for tid in tids:
            if time.monotonic() > self._deadline:
                raise NotStoppableError(f"process {pid} makes threads faster than they can be stopped", "try again")
            refused = ptrace(SEIZE, tid, 0, 0)
            if refused == errno.EPERM and has_exited(tid):
                continue  # the kernel says EPERM of a zombie, too
            if refused not in (0, errno.ESRCH):
                return False
            self._signals[pid][tid] = 0
        return True

    def _wait_for(self, waiting: dict[int, tuple[int, float]]) -> None:
        """Until those threads stand still; each is of a process, and ran at some time at the earliest."""
        started, polls = time.monotonic(), 0
        at_once = POLLS if len(waiting) < (os.cpu_count() or 1) else 0  # else this process has a processor they want
        while waiting:
            for tid, (pid, ran) in tuple(waiting.items()):
                now = time.monotonic()
                signal = _stopped(tid)
                if signal == RUNS:
                    waiting[tid] = pid, now
                    continue
                del waiting[tid]
                if signal == ENDED:
                    del self._signals[pid][tid]
                    continue
                self._signals[pid][tid] = signal
                self.began = min(self.began or ran, ran)
            polls += 1
            if polls > at_once and waiting:
                self._check_patience(waiting, started)
                time.sleep(NAP)  # the kernel stops them in microseconds, or not until a device has answered

    def _check_patience(self, waiting: dict[int, tuple[int, float]], started: float) -> None:
        now = time.monotonic()
        for tid, (pid, _) in waiting.items():
            if now > self._deadline or (now > started + STUCK and is_in_the_kernel(tid)):
                raise NotStoppableError(f"thread {tid} of process {pid} does not stop", "it may be stuck in the kernel")


def _not_traceable(pids: Sequence[int]) -> NotStoppableError:
    """Says which of them, and why."""
    for pid in pids:
        tracer = tracer_of(pid)
        if tracer:
            return NotStoppableError(f"process {pid} is being traced by process {tracer}", "end that debugger first")
    hint = "run as its user, and set /proc/sys/kernel/yama/ptrace_scope to 0"
    return NotStoppableError(f"process {pids[0]} can't be stopped, operation not permitted", hint)


def _stopped(tid: int) -> int:
    """The signal that a stopped thread is about to get (0: none), `RUNS`, or `ENDED`."""
    try:
        ready, status = os.waitpid(tid, WALL | os.WNOHANG)
    except ChildProcessError:
        return ENDED
    return _signal_of(status) if ready else RUNS


def _signal_of(status: int) -> int:
    if not os.WIFSTOPPED(status):
        return ENDED
    return 0 if status >> 16 == EVENT_STOP else os.WSTOPSIG(status)


def _release_running(tid: int) -> None:
    """Let go of a thread that has not stopped yet, which it has to before that (ptrace(2), PTRACE_DETACH)."""
    ptrace(INTERRUPT, tid, 0, 0)
    deadline = time.monotonic() + STUCK
    while time.monotonic() < deadline:
        try:
            ready, status = os.waitpid(tid, WALL | os.WNOHANG)
        except ChildProcessError:
            return
        if ready:
            ptrace(DETACH, tid, 0, max(_signal_of(status), 0))
            return
        time.sleep(NAP)


def task_ids(pid: int) -> list[int]:
    """The threads of a process, ascending; raises `TargetEndedError` if it has ended."""
    try:
        with os.scandir(f"/proc/{pid}/task") as entries:
            return sorted(int(entry.name) for entry in entries)
    except OSError as error:
        raise TargetEndedError(f"process {pid} has ended") from error


class _RegisterRoom(threading.local):
    """Where the kernel puts registers; made before the target stands still, as making it takes longer than the call."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(REGISTERS_SIZE)
        self.vector = (ctypes.c_size_t * 2)(ctypes.addressof(self.buffer), REGISTERS_SIZE)  # struct iovec
        self.address = ctypes.addressof(self.vector)


_room = _RegisterRoom()


def raw_registers(tid: int) -> Optional[bytes]:
    """The general registers of a stopped thread as the kernel has them, None if they can't be read."""
    _room.vector[1] = REGISTERS_SIZE  # the kernel writes there how many bytes it had
    return None if ptrace(GETREGSET, tid, NT_PRSTATUS, _room.address) else _room.buffer.raw


def by_dwarf_number(raw: Optional[bytes]) -> Union[dict[int, int], Absent]:
    """What `raw_registers` has read."""
    processor = of_kernel(os.uname().machine)  # ptrace gives what the kernel's own processor has
    if processor is None:
        return Absent("its registers can't be read on this processor")
    if raw is None:
        return Absent("its registers can't be read")
    order = processor.kernel_registers
    return {number: value for number, value in zip(order, struct.unpack_from(f"<{len(order)}Q", raw)) if number >= 0}


def raw_pc_and_stack_pointer(raw: bytes) -> tuple[int, int]:
    """The two in what `raw_registers` has read, 0 both on a processor that is not known."""
    pc_at, pointer_at = _places_in_raw()
    if pc_at < 0:
        return 0, 0
    return struct.unpack_from("<Q", raw, pc_at)[0], struct.unpack_from("<Q", raw, pointer_at)[0]


@lru_cache(maxsize=1)
def _places_in_raw() -> tuple[int, int]:
    processor = of_kernel(os.uname().machine)
    if processor is None:
        return -1, -1
    order = processor.kernel_registers
    return 8 * order.index(processor.pc), 8 * order.index(processor.stack_pointer)


def is_in_the_kernel(tid: int) -> bool:
    """Whether a thread sleeps where nothing but what it waits for wakes it (proc(5), state D)."""
    return _state(tid) == "D"


def is_waiting(tid: int) -> bool:
    """Whether a thread waits in the kernel, and not for a processor (proc(5), states S and D)."""
    return _state(tid) in ("S", "D")


def has_exited(tid: int) -> bool:
    """Whether a thread is a zombie, dead, or gone (proc(5), states Z and X)."""
    return _state(tid) in ("", "Z", "X")


def _state(tid: int) -> str:
    """Its letter in /proc/TID/stat, "" if there is no such thread."""
    try:
        return Path(f"/proc/{tid}/stat").read_text(errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return ""


def tracer_of(pid: int) -> int:
    """Which process traces a process already, 0 if none does (proc(5), TracerPid)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("TracerPid:")), 0)


@lru_cache(maxsize=1)
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return library


def ptrace(request: int, tid: int, address: int, data: int) -> int:
    """0, or an errno value."""
    return ctypes.get_errno() if _library().ptrace(request, tid, address, data) == -1 else 0


def ptrace_value(request: int, tid: int, address: int) -> int:
    """What a request returns, -1 if it fails."""
    value: int = _library().ptrace(request, tid, address, 0)
    return value
