"""Values of a controlled job: a rank's stop, and what a debugger's step still waits for.

Values alone: the job makes them, packets tell of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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


@dataclass
class Aims:
    """What a debugger's step is waiting for, until it has been done or another stop has been reported.

    `arrived` is the thread with which the rank of `arrival` has come, if it takes a step there; `stepping` the rank and
    the thread of a step that takes long. The stops of `alone` are the only ones reported: its debugger steps it;
    `waiting` are threads that stand at other ranks' breakpoints meanwhile.
    """

    arrival: Optional[Arrival] = None
    arrived: Optional[int] = None
    stepping: Optional[tuple[int, int]] = None
    alone: Optional[int] = None
    waiting: set[int] = field(default_factory=set)
