"""How long the kernel has given processors to a kernel thread (proc(5), /proc/PID/task/TID/schedstat)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pieglobalsfind.model import Absent

from .loads import Seconds

NANOSECOND = 1e-9


def processor_seconds(pid: int, thread: int) -> Seconds:
    """The processor time of a thread of a process, or of a process of its own that shares its memory."""
    for path in (Path(f"/proc/{pid}/task/{thread}/schedstat"), Path(f"/proc/{thread}/schedstat")):
        with suppress(OSError, ValueError, IndexError):
            return int(path.read_text().split()[0]) * NANOSECOND
    return Absent(f"the kernel does not report the processor time of thread {thread}")
