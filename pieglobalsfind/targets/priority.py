"""Raise this process's priority while others are paused, so that the pause is short.

Takes nothing from a target. The kernel permits more than the process has to root and by RLIMIT_NICE (setpriority(2));
for all others the priority stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
