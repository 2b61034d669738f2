"""Events of several processes, put in the order of time though they are read one process after another."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from inspector.job.event_sources import JobEvents, LostEvents, reader
from pieglobalsfind.decoders.registry.event_ring import Event
from pieglobalsfind.errors import NotVirtualizedError, RegistryError
from pieglobalsfind.target import Target
from tests.support.fabricate import ampi, pip
from tests.support.fabricate.memory import Mapped, MemoryTarget


class Written:
    """A source of events that a test hands out round by round."""

    def __init__(self, process: int, rounds: list[list[int]]) -> None:
        self.member = self.ring = self  # what a follower asks of either
        self.descriptor, self.index, self.pid, self.core = -1, process, 0, "core"
        self._rounds = rounds

    def has_ended(self) -> bool:
        return len(self._rounds) == 1

    def new(self) -> tuple[list[Event], int]:
        return [Event(0, when, 0, "created", 0, 0, self.index, -1, 0) for when in self._rounds.pop(0)], 0


def test_events_of_several_processes_are_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 1 is read after process 0, and publishes one event late."""
    clock = iter((100, 200, 300, 400))
    monkeypatch.setattr("inspector.job.event_sources.time.monotonic_ns", lambda: next(clock))
    sources = [Written(0, [[10, 40], [150], [250], []]), Written(1, [[20, 101], [95, 202], [203], [301]])]
    follower = JobEvents(sources)  # type: ignore[arg-type]
    told = [[one.monotonic for one in follower.look()] for _ in range(4)]
    rest = [one.monotonic for one in follower.rest()]
    everything = [*itertools.chain(*told), *rest]
    assert everything == sorted(everything) and len(everything) == 10
    assert told[0] == [] and told[1] == [10, 20, 40, 95] and follower.is_over


def test_clocks_that_differ_hold_nothing_back_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100, 900, 100))
    monkeypatch.setattr("inspector.job.event_sources.time.monotonic_ns", lambda: next(clock))
    follower = JobEvents([Written(0, [[10**15], [], [], [], []])])  # type: ignore[list-item]
    told = [[one.monotonic for one in follower.look() if not isinstance(one, LostEvents)] for _ in range(4)]
    assert told == [[], [], [], [10**15]]


def test_a_hook_is_recommended_where_there_is_one(tmp_path: Path) -> None:
    """AMPI's; neither to PiP nor to a program without ranks."""

    def refused(target: Target) -> str:
        with pytest.raises(RegistryError) as raised:
            reader(target)
        assert "has no registry" in raised.value.sentence
        return raised.value.hint

    assert "link the hook module into it" in refused(ampi.Job("pie").target(tmp_path))
    assert refused(pip.Job(3).target(tmp_path)) == ""
    with pytest.raises(NotVirtualizedError):
        reader(MemoryTarget([Mapped(0x1000, 0x1000, bytes(0x1000), "")]))
