"""Recordings of made-up samples, against a plain list of all of them."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from inspector.recording import recording as module
from inspector.recording.files import FORMS
from inspector.recording.mpi_time import OUTSIDE, UNKNOWN, call_times
from inspector.recording.recording import Calls, Recording
from pieglobalsfind.stacks.call_tree import Call

RANKS, SAMPLES, PERIOD = 4, 400, 0.01
MAIN = Call("main", "/a/heat.c", 90, "/a/heat")
STACKS: tuple[Calls, ...] = (
    (MAIN, Call("solve", "/a/heat.c", 41, "/a/heat")),
    (MAIN, Call("solve", "/a/heat.c", 44, "/a/heat"), Call("MPI_Recv", library="/lib/librankmpi.so")),
    (MAIN, Call("MPI_Barrier", library="/lib/librankmpi.so")),
)
CALLS = (OUTSIDE, "MPI_Recv", "MPI_Barrier")


def samples(seed: int) -> list[tuple[float, dict[int, int]]]:
    """The number of each rank's stack by time; a rank may be elsewhere, and stays where it is most of the time."""
    chance = random.Random(seed)
    now: dict[int, int] = {}
    found = []
    for number in range(SAMPLES):
        for rank in range(RANKS):
            if chance.random() < 0.3:
                now[rank] = chance.randrange(-1, len(STACKS))
        found.append((number * PERIOD, {rank: one for rank, one in now.items() if one >= 0}))
    return found


def recorded(taken: list[tuple[float, dict[int, int]]], by_line: bool = False) -> Recording:
    made = Recording(by_line)
    for at, stacks in taken:
        made.add(at, {rank: STACKS[one] for rank, one in stacks.items()}, {})
    made.finish(SAMPLES * PERIOD)
    return made


def expected(taken: list[tuple[float, dict[int, int]]]) -> dict[tuple[int, int], float]:
    """By rank and stack: each sample holds until the next."""
    seconds: Counter[tuple[int, int]] = Counter()
    for _, stacks in taken:
        seconds.update(dict.fromkeys(stacks.items(), 1))
    return {key: PERIOD * count for key, count in seconds.items()}


def functions(calls: Calls) -> list[str]:
    return [call.function for call in calls]


@pytest.mark.parametrize("seed", range(3))
def test_every_stretch_and_every_sum(seed: int) -> None:
    taken = samples(seed)
    made = recorded(taken)
    for rank in made.ranks:
        for start, end, stack in made.stretches(rank):
            inside = [stacks.get(rank, -1) for at, stacks in taken if start <= at < end]
            assert inside and {tuple(functions(STACKS[one])) for one in inside} == {
                tuple(functions(made.stacks[stack]))
            }
    times = {time.call: time.seconds for time in call_times(made)}
    for (rank, stack), seconds in expected(taken).items():
        assert times[CALLS[stack]][rank] == pytest.approx(seconds)
    assert next(iter(call_times(made))).call == OUTSIDE


def test_memory_is_bounded_and_sums_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHANGES", 100)
    taken = samples(7)
    made, whole = recorded(taken), expected(taken)
    stretches = [(rank, stretche) for rank in made.ranks for stretche in made.stretches(rank)]
    assert len(stretches) <= 100 and made.grain > PERIOD
    times = {time.call: time.seconds for time in call_times(made)}
    assert all(times[CALLS[stack]][rank] == pytest.approx(seconds) for (rank, stack), seconds in whole.items())
    for rank, stretch in stretches:  # what is kept was so when it is said to begin
        now = [stacks.get(rank, -1) for at, stacks in taken if at <= stretch.start][-1]
        assert functions(STACKS[now]) == functions(made.stacks[stretch.stack])


def test_lines_are_apart_only_if_asked_for() -> None:
    taken = [(0.0, {0: 0}), (PERIOD, {0: 1})]
    lines = {by_line: {stack[0].line for stack in recorded(taken, by_line).stacks} for by_line in (False, True)}
    assert lines == {False: {0}, True: {90}}


def test_speedscope_has_what_its_format_asks_for() -> None:
    """File, Frame and SampledProfile of https://www.speedscope.app/file-format-schema.json."""
    made = recorded(samples(1))
    whole = json.loads("".join(FORMS["speedscope"](made, "process 1")))
    assert whole["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = whole["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str) for frame in frames)
    assert [one["name"] for one in whole["profiles"]] == ["all 4 ranks, added up", *(f"rank {one}" for one in range(4))]
    for profile in whole["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["unit"]) == ("sampled", "seconds")
        assert len(profile["samples"]) == len(profile["weights"]) and min(profile["weights"]) >= 0
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"] - profile["startValue"])
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
    merged: dict[str, float] = {}
    for stack, weight in zip(whole["profiles"][0]["samples"], whole["profiles"][0]["weights"]):
        name = frames[stack[-1]]["name"]
        merged[name] = merged.get(name, 0.0) + weight
    sums = {functions(stack)[-1]: 0.0 for stack in STACKS}
    for (_, stack), seconds in expected(samples(1)).items():
        sums[functions(STACKS[stack])[-1]] += seconds
    assert merged == pytest.approx(sums)


def test_perfetto_has_nested_slices_and_counts_every_rank() -> None:
    made = recorded(samples(2))
    rows = json.loads("".join(FORMS["perfetto"](made, "process 1")))["traceEvents"]
    for rank in made.ranks:
        slices = [row for row in rows if row["ph"] == "X" and row["tid"] == rank + 1]
        for start, end, stack in made.stretches(rank):
            middle = 1e6 * (start + end) / 2
            inside = [one for one in slices if one["ts"] <= middle < one["ts"] + one["dur"]]
            outermost_first = sorted(inside, key=lambda one: (one["ts"], -one["dur"]))
            assert [one["name"] for one in outermost_first] == functions(made.stacks[stack])
    assert all(0 <= sum(row["args"].values()) <= RANKS for row in rows if row["ph"] == "C")


def test_folded_stacks_add_up() -> None:
    taken = samples(3)
    lines = [line.rpartition(" ") for line in "".join(FORMS["folded"](recorded(taken), "")).splitlines()]
    assert {int(count) for _, _, count in lines} == {round(1000 * one) for one in expected(taken).values()}
    assert {line for line, _, _ in lines} >= {
        "rank 0;main;solve",
        "rank 0;main;solve;MPI_Recv",
        "rank 0;main;MPI_Barrier",
    }


def test_a_rank_without_a_stack_is_in_no_call_and_not_outside_of_mpi() -> None:
    made = Recording()
    made.add(0.0, {0: STACKS[1]}, {})
    made.add(1.0, {}, {0: "it is being switched"})
    made.finish(3.0)
    assert {time.call: time.seconds[0] for time in call_times(made)} == {OUTSIDE: 0.0, "MPI_Recv": 1.0, UNKNOWN: 2.0}
