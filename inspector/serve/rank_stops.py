"""What happens to a rank that a debugger controls, and what it waits for.

Values alone: the job makes them, packets tell of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .watchpoints import Watch

TRAPPED, STEPPED, WATCHED, SIGNALLED, EXITED, LEFT = "swbreak", "step", "watch", "signal", "exit", "left"


@dataclass(frozen=True)
class RankStop:
    """What has happened to a rank: `number` is a signal's or an exit status, `watch` what was touched."""

    rank: int
    kind: str
    number: int = 0
    watch: Optional[Watch] = None


@dataclass(frozen=True)
class Arrival:
    """A rank that is not on a processor: where it goes on, and whether it takes a step there."""

    rank: int
    address: int
    then_step: bool
