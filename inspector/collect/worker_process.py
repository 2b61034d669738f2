"""Work that may hang or die, in a process of its own: its outcome is a value, and no caller waits for ever.

Takes a function that sends what it finds; gives what it has sent, or why nothing comes. Both processes run one
program, so they send pickles. The process ends with the one that has started it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, Optional

from pieglobalsfind.shell.signals import ENDING

PR_SET_PDEATHSIG = 1
LENGTH = struct.Struct("=Q")
SHORTEST = 0.001  # seconds: what is there already is taken, though it is late
PAUSE = 0.005  # seconds between two looks at a process that ends


@dataclass(frozen=True)
class LostWorker:
    """Nothing comes: `reason` says what became of it, "was ended by signal 9 (Killed)"."""

    reason: str


class Channel:
    """One end of a pair; times are of `time.monotonic`, and None is for ever."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sends = threading.Lock()  # who sends: what one sends is in one piece

    def fileno(self) -> int:
        """Return the channel's file descriptor."""
        return self._end.fileno()

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def send(self, value: object, until: Optional[float] = None) -> None:
        """Raises `OSError` if the other has ended, or does not take it in time."""
        data = pickle.dumps(value)
        with self._sends:
            self._end.settimeout(left(until))
            self._end.sendall(LENGTH.pack(len(data)) + data)

    def receive(self, until: Optional[float] = None) -> Any:
        """Raises `OSError` if nothing comes in time, `EOFError` if nothing will."""
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size, until))
        return pickle.loads(self._exactly(size, until))

    def _exactly(self, size: int, until: Optional[float]) -> bytearray:
        data = bytearray(size)
        at = 0
        while at < size:
            self._end.settimeout(left(until))
            count = self._end.recv_into(memoryview(data)[at:])
            if not count:
                raise EOFError
            at += count
        return data


def left(until: Optional[float]) -> Optional[float]:
    """Return the seconds until a deadline, None without one."""
    return None if until is None else max(until - time.monotonic(), SHORTEST)


class Worker:
    """A function in a process of its own."""

    def __init__(self, work: Callable[[Channel], object], is_quiet: bool = False) -> None:
        """`is_quiet`: it has no standard output, so that no reader waits for what it might still write."""
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self._status: Optional[int] = None
        starter = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # our handlers are not for the child
        self._pid = os.fork()
        if not self._pid:
            for number in ENDING:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            ours.close()
            work_and_end(work, Channel(theirs), starter, is_quiet)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def send(self, value: object, until: float) -> None:
        """It is heard of in `receive` if that is in vain."""
        with suppress(OSError):
            self.channel.send(value, until)

    def receive(self, until: float) -> Any:
        """What it has sent next, or `LostWorker`."""
        try:
            return self.channel.receive(until)
        except EOFError:
            return LostWorker(self._end())
        except OSError:
            return LostWorker("has not answered in time (--timeout)")

    def _end(self) -> str:
        """How it has ended, in words."""
        if self._status is None:
            _, status = os.waitpid(self._pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
        if self._status >= 0:
            return f"has ended with status {self._status}"
        return f"was ended by signal {-self._status} ({signal.strsignal(-self._status)})"

    def close(self, until: float = 0.0) -> None:
        """Wait for its end, and end it if that does not come in time; the kernel may not let it end."""
        while self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                os.kill(self._pid, signal.SIGKILL)
                break
            else:
                time.sleep(PAUSE)
        self.channel.close()


def work_and_end(work: Callable[[Channel], object], channel: Channel, starter: int, is_quiet: bool) -> NoReturn:
    """What the new process does, up to its end."""
    status = 1
    try:
        end_with(starter)
        if is_quiet:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        work(channel)
        status = 0
    except Exception as error:
        with suppress(OSError):
            channel.send(LostWorker(f"has failed, {type(error).__name__}: {error}"))
    finally:
        os._exit(status)


def end_with(starter: int) -> None:
    """End this process as soon as its parent ends, whatever it is doing then (prctl(2))."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != starter:
        os._exit(1)


def first_of(workers: Sequence[Worker], until: float) -> Optional[Worker]:
    """One that has something to say, or has ended; None if none has in time."""
    channels, _, _ = select.select([worker.channel for worker in workers], [], [], left(until))
    return next((worker for worker in workers if worker.channel in channels), None)
