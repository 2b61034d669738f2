"""A program that is stopped at each of its system calls: every state that it is in as the kernel sees it, in order.

Takes a command; gives its pid at each stop of its first thread, which is traced (ptrace(2)), and is killed afterwards.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Optional

TRACE_ME, NEXT_CALL = 0, 24  # PTRACE_TRACEME, PTRACE_SYSCALL of <sys/ptrace.h>
MOST_STOPS = 10000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes, _libc.ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long


def stops_of(command: Sequence[object], folder: Path, environment: Optional[Mapping[str, str]] = None) -> Iterator[int]:
    """Its pid, before and after each system call, from the first moment of its program on."""
    with subprocess.Popen(
        [str(one) for one in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: _libc.ptrace(TRACE_ME, 0, 0, 0),
    ) as process:
        try:
            for _ in range(MOST_STOPS):
                _, status = os.waitpid(process.pid, 0)
                if not os.WIFSTOPPED(status):
                    return
                yield process.pid
                given = os.WSTOPSIG(status)
                _libc.ptrace(NEXT_CALL, process.pid, 0, 0 if given == signal.SIGTRAP else given)
        finally:
            process.kill()
