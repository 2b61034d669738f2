"""Merging what collectors tell: stacks of up to 524,288 ranks, by a generator, on one core."""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
import time

from inspector import stack_groups
from inspector.stack_groups import StackGroups
from pieglobalsfind.call_tree import Call
from tests.bench.result import Measurement, Result
from tests.conftest import ROOT

COLLECTORS, STACKS, DEPTH = 512, 1000, 12
SIZES = (1_000, 8_192, 65_536, 524_288)  # ranks; the last is the largest run that papers of the field report
SPREAD = 2_654_435_761  # Knuth's multiplicative hash: neighbours among the ranks are in different stacks


def run() -> Result:
    rows = []
    for ranks in SIZES:
        # A process for each, so that its peak is its own.
        command = [sys.executable, "-m", "tests.bench.merging", str(ranks)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        seconds, memory = map(float, done.stdout.split())
        last = ranks == SIZES[-1]
        rows.append(Measurement(f"{ranks:,} ranks", seconds, "s", 1.0 if last else None))
        if last:
            rows.append(Measurement("the same, peak memory", memory / 1e6, "MB", 500.0))
    return Result(
        "Merging stacks of a whole job",
        f"From {COLLECTORS} collectors' messages (unpacked) to one call tree; {STACKS:,} distinct stacks of {DEPTH} "
        "calls, spread so that every collector has most of them or as many as it has ranks.",
        tuple(rows),
    )


def stack(number: int) -> tuple[Call, ...]:
    return tuple(
        Call(f"step_{level}_{number >> max(0, DEPTH - level - 1)}", f"file{level}.c", number % 90 + 1)
        for level in range(DEPTH)
    )


def messages(ranks: int) -> list[bytes]:
    """What each collector sends of its part of the ranks."""
    stacks, sent = [stack(number) for number in range(STACKS)], []
    for collector in range(COLLECTORS):
        part = StackGroups()
        for rank in range(collector * ranks // COLLECTORS, (collector + 1) * ranks // COLLECTORS):
            part.add((rank,), stacks[rank * SPREAD % (1 << 32) % STACKS])
        sent.append(pickle.dumps(part.message()))
    return sent


def merged(ranks: int) -> tuple[float, int]:
    """Seconds for the merge, and the peak memory of this process in bytes."""
    sent = messages(ranks)
    start = time.process_time()
    tree = stack_groups.merge(pickle.loads(one) for one in sent).tree()
    seconds = time.process_time() - start
    if len(tree.ranks) != ranks:
        raise AssertionError("ranks were lost")
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(*merged(int(sys.argv[1])))
