"""How often a job may be looked at, so that it loses no more than a small share of its time.

Takes what each look has cost; gives how long to wait until the next one. A look costs the time for which the job stands
still; if all of the job's processors are busy, it also costs the processor time that it uses.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

# Of the job's time: while it stands still, and where none of its processors is idle, what is taken. What can't be
# counted, such as caches that the copying has emptied, comes on top: together it is to stay below 2 %.
MOST_LOST = 0.016
MOST_BUSY = 0.5  # of one processor may be taken where some are
IDLE = 0.3  # of a processor must have been idle for that
WINDOW = 0.5  # seconds over which that is measured; the kernel counts in hundredths
IDLE_FIELDS = (3, 4)  # of a line of /proc/stat: idle, iowait (proc(5))


class Pace:
    """The time between looks at a process: `period` seconds, or more where that would cost the job too much.

    `taken`: the largest share of its processors' time for looks that don't stop it, while no processor is idle.
    """

    def __init__(self, pid: int, period: float, taken: float = MOST_LOST) -> None:
        self._period = period
        self._weight = MOST_LOST / taken
        self._processors = _processors_of(pid)
        self.began = time.monotonic()
        self._stopped = 0.0
        self._lost = 0.0
        self._slowed = 0  # looks after which the next one had to wait for longer than the period
        self._measured = self.began
        self._idle_before = idle_seconds(self._processors)
        self.is_idle = True

    @property
    def slowed(self) -> int:
        """How many looks the next one waited for longer than asked, so that the job loses no more."""
        return self._slowed

    @property
    def stopped_share(self) -> float:
        """For which part of the time the job stood still so far."""
        return self._stopped / max(time.monotonic() - self.began, 1e-9)

    def wait(self, began: float, stopped: float, busy: float) -> float:
        """Seconds until the next look, after one that began then, and took `busy` seconds of a processor."""
        now = time.monotonic()
        self._stopped += stopped
        self._measure(now)
        self._lost += stopped + (0.0 if self.is_idle else self._weight * busy / len(self._processors))
        earliest = max(began + self._period, self.began + self._lost / MOST_LOST, began + busy / MOST_BUSY)
        self._slowed += earliest > began + 1.1 * max(self._period, now - began)
        return max(earliest - now, 0.0)

    def _measure(self, now: float) -> None:
        """Whether a processor of the job's was idle for a good part of the last moments."""
        if now < self._measured + WINDOW:
            return
        idle = idle_seconds(self._processors)
        self.is_idle = idle - self._idle_before >= IDLE * (now - self._measured)
        self._measured, self._idle_before = now, idle


def _processors_of(pid: int) -> frozenset[int]:
    """Those that the process may run on."""
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return frozenset(range(os.cpu_count() or 1))


def idle_seconds(processors: frozenset[int], path: str = "/proc/stat") -> float:
    """For how long some processors were idle since the machine began, together; 0.0 if the kernel does not tell."""
    ticks = 0
    try:
        for line in Path(path).read_text().splitlines():
            name, *numbers = line.split()
            if name[:3] == "cpu" and name[3:].isdecimal() and int(name[3:]) in processors:
                ticks += sum(int(numbers[at]) for at in IDLE_FIELDS)
    except (OSError, ValueError, IndexError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")
