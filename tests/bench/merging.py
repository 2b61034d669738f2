"""Merging what collectors tell: stacks of up to 524,288 ranks, by a generator, on one core."""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
import time
from collections import defaultdict

from inspector.analysis import stack_groups
from inspector.analysis.stack_groups import StackGroups
from pieglobalsfind.stacks.call_tree import Call
from tests.bench.plot import plot
from tests.bench.result import Measurement, Picture, Result
from tests.support.running import ROOT

COLLECTORS, STACKS, DEPTH = 512, 1000, 12
MANY = 16_000  # stacks
SIZES = (1_000, *(1 << power for power in range(11, 20)))  # ranks; the last is the largest run that papers report
SPREAD = 2_654_435_761  # Knuth's multiplicative hash: neighbours among the ranks are in different stacks
ROUNDS = 3
DOUBLING = 2.3  # at most, of the time when the ranks double: near-linear


def run() -> Result:
    found = {ranks: measured(ranks, STACKS) for ranks in SIZES}
    times = {ranks: seconds for ranks, (seconds, _) in found.items()}
    most, half = SIZES[-1], SIZES[-2]
    memory, (several, _) = found[most][1], measured(most, MANY)
    return Result(
        "Merging stacks of a whole job",
        f"From {COLLECTORS} collectors' messages (unpacked) to one call tree; {STACKS:,} distinct stacks of {DEPTH} "
        "calls, spread so that every collector has most of them or as many as it has ranks. Processor time of one "
        f"core, the best of {ROUNDS}. The memory is all that the process ever had, all collectors' messages included.",
        (
            *(Measurement(f"{ranks:,} ranks", times[ranks], "s", 1.0 if ranks == most else None) for ranks in SIZES),
            Measurement(f"{most:,} ranks relative to {half:,}", times[most] / times[half], "x", DOUBLING),
            Measurement(f"{most:,} ranks, peak memory", memory / 1e6, "MB", 500.0),
            Measurement(f"{most:,} ranks in {MANY:,} distinct stacks", several, "s"),
            Measurement(f"relative to {STACKS:,}", several / times[most], "x", MANY / STACKS),
        ),
        (Picture("Merging stacks of a whole job", "merging.svg", picture(times)),),
    )


def measured(ranks: int, stacks: int) -> tuple[float, float]:
    """Seconds and bytes, of a process for each, so that its peak is its own."""
    command = [sys.executable, "-m", "tests.bench.merging", str(ranks), str(stacks)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def picture(times: dict[int, float]) -> str:
    """Against a line that would be in proportion to the ranks."""
    most = max(times)
    proportional = [(ranks, times[most] * ranks / most) for ranks in times if times[most] * ranks / most >= 0.01]
    return plot(
        f"Merging {STACKS:,} distinct stacks from {COLLECTORS} collectors",
        "ranks",
        "seconds of processor time",
        {"measured": list(times.items())},
        {"in proportion to the ranks": proportional},
    )


def stack(number: int) -> tuple[Call, ...]:
    return tuple(
        Call(f"step_{level}_{number >> max(0, DEPTH - level - 1)}", f"file{level}.c", number % 90 + 1)
        for level in range(DEPTH)
    )


def messages(ranks: int, distinct: int) -> list[bytes]:
    """What each collector sends of its part of the ranks."""
    stacks, sent = [stack(number) for number in range(distinct)], []
    for collector in range(COLLECTORS):
        part, members = StackGroups(), defaultdict[int, list[int]](list)
        for rank in range(collector * ranks // COLLECTORS, (collector + 1) * ranks // COLLECTORS):
            members[rank * SPREAD % (1 << 32) % distinct].append(rank)
        for number, found in members.items():
            part.add(found, stacks[number])
        sent.append(pickle.dumps(part.message()))
    return sent


def merged(ranks: int, distinct: int) -> tuple[float, int]:
    """Seconds for the merge, and the peak memory of this process in bytes."""
    sent, seconds = messages(ranks, distinct), []
    for _ in range(ROUNDS):
        start = time.process_time()
        tree = stack_groups.merge(pickle.loads(one) for one in sent).tree()
        seconds.append(time.process_time() - start)
        if len(tree.ranks) != ranks:
            raise AssertionError("ranks were lost")
        del tree
    return min(seconds), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(*merged(*map(int, sys.argv[1:])))
