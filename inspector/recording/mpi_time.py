"""How long each rank was in which MPI call, by the stacks of a recording.

Takes a recording; gives seconds by rank and call. A stack counts for the outermost MPI call in it; a stack without one
counts as outside of MPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pieglobalsfind.mpi.call_from_stack import outermost_call

from .recording import Recording

OUTSIDE = ""  # in place of a call's name: the rank computes, or does whatever is not MPI
UNKNOWN = "(unknown)"  # likewise: there is no stack


@dataclass(frozen=True)
class CallTime:
    """One call's seconds by rank, of all ranks: 0.0 if a rank was never in it. `call` is `OUTSIDE` for the rest."""

    call: str
    seconds: Mapping[int, float]

    @property
    def total(self) -> float:
        """Return the seconds of all ranks."""
        return sum(self.seconds.values())

    @property
    def mean(self) -> float:
        """Return the seconds of a rank on average."""
        return self.total / len(self.seconds) if self.seconds else 0.0

    @property
    def least(self) -> int:
        """The rank that was in it for the shortest time, the lowest one if several were."""
        return min(self.seconds, key=lambda rank: (self.seconds[rank], rank))

    @property
    def most(self) -> int:
        """Return the rank that was there longest."""
        return min(self.seconds, key=lambda rank: (-self.seconds[rank], rank))


def calls_of(recording: Recording) -> list[str]:
    """By the number of a stack, the MPI call that it is in, `OUTSIDE` or `UNKNOWN`."""
    calls = [outermost_call(frame.function for frame in stack) or OUTSIDE for stack in recording.stacks]
    return [UNKNOWN if number in recording.unknown else call for number, call in enumerate(calls)]


def call_times(recording: Recording) -> list[CallTime]:
    """What is outside of MPI first, then the calls, those that took longest first."""
    calls = calls_of(recording)
    by_call: dict[str, dict[int, float]] = {OUTSIDE: {}}
    for rank, stacks in recording.seconds.items():
        for stack, seconds in stacks.items():
            of_call = by_call.setdefault(calls[stack], {})
            of_call[rank] = of_call.get(rank, 0.0) + seconds
    ranks = sorted(recording.seconds)
    times = [CallTime(call, {rank: held.get(rank, 0.0) for rank in ranks}) for call, held in by_call.items()]
    return sorted(times, key=lambda time: (time.call != OUTSIDE, -time.total, time.call))
