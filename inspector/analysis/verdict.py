"""Hold the verdict on a job: its kind, the ranks that stand out, and the command to type next.

Takes nothing; holds for the moment of the report that it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .method_diagnoses import Diagnosis

CRASH = "crash"
DEADLOCK = "deadlock"
POSSIBLE_DEADLOCK = "possible deadlock"  # unless a message is on its way, which this way of reading can't tell
STANDSTILL = "standstill"  # all ranks wait; only a message that is on its way could let one go on
IMBALANCE = "imbalance"  # most ranks wait for few that run
HEALTHY = "healthy"  # nothing of all that was found, at this moment
KINDS = (CRASH, DEADLOCK, POSSIBLE_DEADLOCK, STANDSTILL, IMBALANCE, HEALTHY)


@dataclass(frozen=True)
class RankFinding:
    """Something in which some ranks differ; `command` shows more of it."""

    sentence: str
    ranks: tuple[int, ...]
    command: str


@dataclass(frozen=True)
class Verdict:
    """`kind` is one of KINDS; `ranks` are those that stand out, () where none does; `command` is what to type next."""

    kind: str
    sentence: str
    ranks: tuple[int, ...]
    command: str
    findings: tuple[RankFinding, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def headline(self) -> str:
        """`deadlock: ranks 13-14 wait for one another, 13 -> 14 -> 13`."""
        return f"{self.kind}: {self.sentence}"
