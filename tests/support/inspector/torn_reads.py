"""Pairs of numbers that must agree at every moment, read while four processing elements change them.

    .venv/bin/python -m tests.support.inspector.torn_reads --reads 10000000

Each rank counts through an array of pairs, over and over: first one number of a pair, then the other. So at any moment
all pairs before a place are one round ahead of those after it, and at most one pair differs within itself. A read is of
one pair; those of a pause are of one moment, over all of a rank's pages.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path

from inspector.job.job import Job, job_of
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.target import Target
from pieglobalsfind.targets.live import LiveTarget
from tests.support.busy_values import address_of
from tests.support.running import BIN

RANKS, ELEMENTS, PAIRS = 8, 4, 2048  # pairs of a rank: eight pages
SOURCE = f"""
#include <mpi.h>
#include <stdio.h>
volatile unsigned long pairs[{PAIRS}][2];
int main(int argc, char **argv) {{
    int rank, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    for (;;) {{
        for (int at = 0; at < {PAIRS}; at++) {{
            pairs[at][0]++;
            pairs[at][1]++;
        }}
        MPI_Iprobe(rank, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE); /* lets another rank run */
    }}
}}
"""


def build(folder: Path) -> Path:
    """The program whose ranks count."""
    source, program = folder / "pairs.c", folder / "pairs"
    source.write_text(SOURCE)
    subprocess.run([str(BIN / "rankcc"), "-g", "-O1", str(source), "-o", str(program)], check=True, timeout=120)
    return program


def command(program: Path) -> list[str]:
    """What starts the job; it prints `ready`, and never ends by itself."""
    return [str(BIN / "rankrun"), "-n", str(RANKS), "--pes", str(ELEMENTS), str(program)]


def read_all(live: LiveTarget) -> dict[int, bytes]:
    """Of each rank all pairs, as they were in one pause."""

    def pairs_of(job: Job) -> dict[int, bytes]:
        return {rank.rank: job.target.read(address_of(job, rank, "pairs"), 16 * PAIRS) for rank in job.table.ranks}

    def read(targets: Sequence[Target]) -> dict[int, bytes]:
        return pairs_of(job_of(targets[0]))

    return at_one_moment([plan_for(live, True)], True, read)


def why_torn(content: bytes) -> str:
    """Why these are no pairs of one moment; "" if they may be."""
    numbers = array("Q", content)
    first = list(numbers)
    # In the order in which they are changed, each number is the last round's or one more, and none rises again.
    steps = [number for number in range(1, len(first)) if first[number] != first[number - 1]]
    if len(steps) > 1:
        return f"{len(steps)} places where a round ends: {steps[:4]}"
    if steps and first[steps[0] - 1] - first[steps[0]] != 1:
        return f"{first[steps[0] - 1]} before {first[steps[0]]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reads", type=int, default=10_000_000, help="pairs (10,000,000)")
    options = parser.parse_args()
    reads = torn = pauses = moved = 0
    before: dict[int, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen(command(build(Path(folder))), stdout=subprocess.PIPE)
        try:
            assert job.stdout is not None and job.stdout.readline() == b"ready\n"
            live = LiveTarget(job.pid)
            while reads < options.reads:
                contents = read_all(live)
                assert sorted(contents) == list(range(RANKS))
                torn += sum(bool(why_torn(content)) for content in contents.values())
                moved += sum(content != before.get(rank) for rank, content in contents.items())
                reads, pauses, before = reads + RANKS * PAIRS, pauses + 1, contents
        finally:
            job.kill()
            job.wait()
    print(f"{reads:,} pairs in {pauses:,} pauses, {torn} torn; {moved / pauses:.1f} of {RANKS} ranks moved in between")
    return 1 if torn else 0


if __name__ == "__main__":
    sys.exit(main())
