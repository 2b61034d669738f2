"""Merging what collectors tell: stacks of up to 524,288 ranks, by a generator, on one core."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from array import array
from collections import defaultdict

from inspector.analysis.stack_groups import StackGroups
from inspector.collect.mpi_stacks import RankPlaces, StackFindings
from inspector.collect.sealed_message import opened, sealed
from inspector.job.job import Subject
from pieglobalsfind.model import Evidence, RankTable
from pieglobalsfind.stacks import call_tree
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
    times = {ranks: seconds for ranks, (seconds, *_) in found.items()}
    most, half = SIZES[-1], SIZES[-2]
    (_, memory, text), (several, *_) = found[most], measured(most, MANY)
    return Result(
        "Merging stacks of a whole job",
        f"From {COLLECTORS} collectors' messages (unpacked) to one call tree, as `inspector stacks --mpi` does it; "
        f"{STACKS:,} distinct stacks of {DEPTH} calls, spread so that every collector has most of them or as many as "
        f"it has ranks. Processor time of one core, the best of {ROUNDS}. The memory is all that the process ever "
        "had, all collectors' messages included, up to the tree as text, in which ranks that are neighbours are in "
        "different stacks, so that each one's number is in it once for every call.",
        (
            *(Measurement(f"{ranks:,} ranks", times[ranks], "s", 1.0 if ranks == most else None) for ranks in SIZES),
            Measurement(f"{most:,} ranks relative to {half:,}", times[most] / times[half], "x", DOUBLING),
            Measurement(f"{most:,} ranks, peak memory", memory / 1e6, "MB", 500.0),
            Measurement(f"{most:,} ranks, the tree as text", text, "s"),
            Measurement(f"{most:,} ranks in {MANY:,} distinct stacks", several, "s"),
            Measurement(f"relative to {STACKS:,}", several / times[most], "x", MANY / STACKS),
        ),
        (Picture("Merging stacks of a whole job", "merging.svg", picture(times)),),
    )


def measured(ranks: int, stacks: int) -> tuple[float, float, float]:
    """Seconds, bytes and seconds for the text, of a process for each, so that its peak is its own."""
    command = [sys.executable, "-m", "tests.bench.merging", str(ranks), str(stacks)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    seconds, memory, text = map(float, done.stdout.split())
    return seconds, memory, text


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
        own = range(collector * ranks // COLLECTORS, (collector + 1) * ranks // COLLECTORS)
        for rank in own:
            members[rank * SPREAD % (1 << 32) % distinct].append(rank)
        for number, found in members.items():
            part.add(found, stacks[number])
        places = RankPlaces(array("q", own), array("q", [1]) * len(own), array("q", [collector]) * len(own))
        subject = Subject(f"process {collector}", table(ranks, collector), "", "")
        findings = StackFindings(frozenset((collector,)), (), subject, places, part.message())
        sent.append(sealed(findings))
    return sent


def table(ranks: int, collector: int) -> RankTable:
    """What a collector tells of its process beside its ranks."""
    return RankTable("pie", "embedded", ranks, (), (), Evidence("registry", ""), process_index=collector)


def merged(ranks: int, distinct: int) -> tuple[float, int, float]:
    """Seconds for the merge, the peak memory of this process in bytes, and seconds for the tree as text."""
    sent, seconds, texts = messages(ranks, distinct), [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        subject, stacks = StackFindings.merge([opened(one, StackFindings) for one in sent]).finished("job", COLLECTORS)
        tree = stacks.tree()
        seconds.append(time.process_time() - start)
        if len(tree.ranks) != ranks or len(subject.table.ranks) != ranks or subject.table.warnings:
            raise AssertionError("ranks were lost")
        start = time.process_time()
        if sum(1 for _ in call_tree.lines(tree)) < min(ranks, distinct):
            raise AssertionError("stacks were lost")
        texts.append(time.process_time() - start)
        del subject, stacks, tree
    return min(seconds), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, min(texts)


if __name__ == "__main__":
    print(*merged(*map(int, sys.argv[1:])))
