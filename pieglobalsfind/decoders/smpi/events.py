"""Recognize when all ranks of SMPI have their copies, by calls of a function that SimGrid's library exports.

SimGrid runs all actors that can go on, one after the other, and calls that a round. An actor makes its copy as it first
runs, and no rank leaves MPI_Init before all have entered it: as the second round begins, all that began are complete.
"""

from __future__ import annotations

ROUND = "_ZN7simgrid6kernel10EngineImpl14run_all_actorsEv"
ROUNDS = 2


class Rounds:
    """Of one process."""

    def __init__(self) -> None:
        self._count = 0

    def begins(self) -> bool:
        """A round begins; whether it is the one before which the copies were made."""
        self._count += 1
        return self._count == ROUNDS

    @property
    def are_done(self) -> bool:
        """Whether nothing more is to be heard of."""
        return self._count >= ROUNDS
