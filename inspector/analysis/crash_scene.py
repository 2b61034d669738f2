"""What a core file says of the thread that got the signal: what diagnoses of crashes are made from.

Takes values that `crash` has read; works out whose the faulting address is.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.model import Owner, Rank
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.unwind import Activation
from pieglobalsfind.targets.core_notes import FatalSignal

from ..job.job import Job

FAULTS = (signals.SIGSEGV, signals.SIGBUS)
SI_KERNEL = 0x80  # si_code of a fault whose address the processor does not tell (sigaction(2))


@dataclass(frozen=True)
class Scene:
    """What a diagnosis is made from: `frames` innermost first, and the calls at each, inlined ones first."""

    job: Job
    signal: FatalSignal
    rank: Optional[Rank]
    frames: tuple[Activation, ...]
    calls_at: tuple[tuple[Call, ...], ...]
    message: str

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls, innermost first."""
        return tuple(call for calls in self.calls_at for call in calls)

    @property
    def address(self) -> Optional[int]:
        """Return the faulting address, None if the signal has none."""
        is_known = self.signal.number in FAULTS and 0 < self.signal.code != SI_KERNEL
        return self.signal.address if is_known else None

    @property
    def owner(self) -> Optional[Owner]:
        """Whose the faulting address is, None without one."""
        return None if self.address is None else self.job.translator.owner(self.address)
