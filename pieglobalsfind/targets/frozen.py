"""A running process that stands still while it is looked at: every thread stopped by ptrace(2), no signal sent.

Takes a pid; gives a live target that can't change, running threads' registers included. The kernel lets everything go
when the target is closed, and also when this process ends in any other way, killed included (PTRACE_SEIZE, no options).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Optional, Union

from pieglobalsfind.errors import TargetError
from pieglobalsfind.model import Absent
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.live import LiveTarget

# <sys/ptrace.h>
GETREGSET, SEIZE, INTERRUPT, DETACH = 0x4204, 0x4206, 0x4207, 17
NT_PRSTATUS = 1
WALL = 0x40000000  # __WALL of waitpid(2): threads too
STUCK = 5.0  # seconds that a thread may be in the kernel before it stops
PATIENCE = 60.0  # seconds until every thread has to stand still: it can't before it gets a processor, on a busy machine
# struct user_regs_struct (<sys/user.h>, x86-64) as DWARF numbers (psABI, figure 3.36); None: it has none
ORDER = (15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, None, 16, None, 49, 7)


class FrozenTarget(LiveTarget):
    """The process, stopped from the construction to `close`. Raises `TargetError` if it may not be traced."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self._stopped: list[int] = []
        self.others: dict[int, FrozenTarget] = {}  # processes of the same job's ranks that stand still with it
        self.began = time.monotonic()
        try:
            self._stop_all()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> FrozenTarget:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    @property
    def is_live(self) -> bool:
        return False

    def close(self) -> None:
        """Let every thread go on."""
        while self.others:
            self.others.popitem()[1].close()
        while self._stopped:
            _ptrace(DETACH, self._stopped.pop(), 0, 0)

    def stop_also(self, pids: Iterable[int]) -> None:
        """Until `close`; raises `TargetError` as the constructor does."""
        for pid in pids:
            self.others[pid] = FrozenTarget(pid)

    def _stop_all(self) -> None:
        """Until no thread is left that runs: those that run may make new ones meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while new := [tid for tid in self._task_ids() if tid not in self._stopped]:
            if time.monotonic() > deadline:
                raise TargetError(
                    f"process {self.pid} makes threads faster than they can be stopped", "leave --freeze out"
                )
            for tid in new:
                self._stop(tid, deadline)

    def _task_ids(self) -> list[int]:
        try:
            return sorted(int(one.name) for one in Path(f"/proc/{self.pid}/task").iterdir())
        except OSError as error:
            raise TargetError(f"process {self.pid} has ended") from error

    def _stop(self, tid: int, deadline: float) -> None:
        code = _ptrace(SEIZE, tid, 0, 0)
        if code == errno.ESRCH:
            return  # a thread that has ended meanwhile
        if code:
            tracer = tracer_of(self.pid)
            if tracer:
                raise TargetError(f"process {self.pid} is being traced by process {tracer}", "end that debugger first")
            hint = "run as its user, and set /proc/sys/kernel/yama/ptrace_scope to 0"
            raise TargetError(f"process {self.pid} can't be frozen, {os.strerror(code)}", hint)
        self._stopped.append(tid)
        _ptrace(INTERRUPT, tid, 0, 0)
        stuck = time.monotonic() + STUCK
        while True:
            try:
                found, status = os.waitpid(tid, WALL | os.WNOHANG)
            except ChildProcessError:
                self._stopped.remove(tid)
                return
            if found and not os.WIFSTOPPED(status):
                self._stopped.remove(tid)  # it has ended
                return
            if found:
                return
            now = time.monotonic()
            if now > deadline or (now > stuck and is_in_the_kernel(tid)):
                raise TargetError(f"thread {tid} of process {self.pid} does not stop", "it may be stuck in the kernel")
            time.sleep(0.0002)  # the kernel stops it in microseconds, or not until a device has answered

    def threads(self) -> Sequence[KernelThread]:
        return tuple(KernelThread(tid, registers_of(tid)) for tid in sorted(self._stopped))


def registers_of(tid: int) -> Union[dict[int, int], Absent]:
    """The general registers of a stopped thread by DWARF number."""
    if os.uname().machine != "x86_64":
        return Absent("its registers can't be read on this processor yet")
    buffer = ctypes.create_string_buffer(27 * 8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), len(buffer))
    if _ptrace(GETREGSET, tid, NT_PRSTATUS, ctypes.addressof(vector)):
        return Absent("its registers can't be read")
    values = struct.unpack_from("<20Q", buffer.raw)
    return {number: value for number, value in zip(ORDER, values) if number is not None}


def is_in_the_kernel(tid: int) -> bool:
    """Whether a thread sleeps where nothing but what it waits for wakes it (proc(5), state D)."""
    try:
        return Path(f"/proc/{tid}/stat").read_text(errors="replace").rpartition(") ")[2].startswith("D")
    except OSError:
        return False


def tracer_of(pid: int) -> int:
    """Who traces a process already, 0 if nobody does (proc(5), TracerPid)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("TracerPid:")), 0)


def _ptrace(request: int, tid: int, address: int, data: int) -> int:
    """0, or an errno value."""
    library: Any = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return ctypes.get_errno() if library.ptrace(request, tid, address, data) == -1 else 0
