"""The numbers by which LLDB knows ranks' threads.

Takes ranks; gives tids that no kernel thread has. LLDB keeps a thread's name as long as its number: a rank that runs
has one number, and one that waits two by turns, so that a new state means a new number.
"""

from __future__ import annotations

from typing import Optional

FIRST_TID = 10_000_000  # no kernel's tid is as large (proc(5), pid_max)
NUMBERS = 4  # tids that every rank has


def tid_of(rank: int, number: int = 0) -> int:
    """A number by which LLDB knows a rank's thread; 0 while it runs."""
    return FIRST_TID + NUMBERS * rank + number


def rank_of_tid(tid: int) -> Optional[int]:
    """None for a kernel thread's."""
    return (tid - FIRST_TID) // NUMBERS if tid >= FIRST_TID else None
