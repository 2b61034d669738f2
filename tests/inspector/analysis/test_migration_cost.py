"""`inspector payload --what-if`, of a program that has known numbers of pages of each kind."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.model import Rebase, Region
from pieglobalsfind.targets import open_target
from tests.support.running import StartJob, built

PAGE = 4096
# Pages: as in the original, each rank's own, equal on all, equal on the first two, zero.
SAME, WRITTEN, EQUAL, PAIRED, EMPTY = 64, 16, 8, 4, 32
PROGRAM = f"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>
_Alignas({PAGE}) char same[{SAME} * {PAGE}] = {{[0 ... {SAME} * {PAGE} - 1] = 7}};
_Alignas({PAGE}) char written[{WRITTEN} * {PAGE}] = {{1}};
_Alignas({PAGE}) char equal[{EQUAL} * {PAGE}] = {{1}};
_Alignas({PAGE}) char paired[{PAIRED} * {PAGE}] = {{1}};
_Alignas({PAGE}) char empty[{EMPTY} * {PAGE}];
int main(int argc, char **argv) {{
    int rank, nothing;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(written, rank + 2, sizeof written);
    memset(equal, 99, sizeof equal);
    memset(paired, 50 + rank / 2, sizeof paired);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("ready %d\\n", same[5] + empty[6]);
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}}
"""


def payload(pid: int, *options: str) -> list[dict[str, Any]]:
    command = [str(built("inspector")), "payload", str(pid), "--json", *options]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    cases: list[dict[str, Any]] = found["what_if" if "--what-if" in options else "payload"]
    return cases


def alike(pid: int, share: bool, unused: dict[int, int]) -> dict[int, tuple[int, int]]:
    """By rank, the bytes in pages of its image that are zero, and in such as another rank has at the same place."""
    table = decode(open_target(pid=pid))
    pages: dict[int, dict[object, bytes]] = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for rank in table.ranks:
            assert isinstance(rank.heap, Region) and isinstance(rank.stack, Region)
            parts: list[tuple[object, int, int]] = [
                ((placement.object, segment.offset), placement.copy + segment.offset, segment.memory_size)
                for placement in rank.placements
                if isinstance(placement, Rebase)
                and placement.object is not None
                and table.objects[placement.object].privatized
                for segment in table.objects[placement.object].segments
                if segment.writable or not share
            ]
            parts.append(("heap", rank.heap.start, rank.heap.size))
            skipped = unused[rank.rank]
            parts.append(("stack", rank.stack.start + skipped, rank.stack.size - skipped))
            own = pages.setdefault(rank.rank, {})
            for place, start, size in parts:
                for first in range(start & -PAGE, start + size, PAGE):
                    begin, end = max(first, start), min(first + PAGE, start + size)
                    memory.seek(begin)
                    own[place, begin - start] = memory.read(end - begin)
    users = Counter(item for own in pages.values() for item in own.items())
    found = {}
    for rank_number, own in pages.items():
        zero = sum(len(page) for page in own.values() if not any(page))
        common = sum(len(page) for place, page in own.items() if any(page) and users[place, page] > 1)
        found[rank_number] = zero, common
    return found


@pytest.mark.parametrize("share", [False, True])
def test_savings(share: bool, start_job: StartJob, tmp_path: Path) -> None:
    source, program = tmp_path / "pages.c", tmp_path / "pages"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 3, *(["--share-code"] if share else []), program)
    job.wait_until_still()
    now = {one["rank"]: one for one in payload(job.pid)}
    found = payload(job.pid, "--what-if", "--bandwidth", "1GB/s", "--latency", "10us")
    assert [one["rank"] for one in found] == [0, 1, 2]
    truth = alike(job.pid, share, {rank: one["stack_unused"] for rank, one in now.items()})
    for one in found:
        sizes, rank = one["bytes"], now[one["rank"]]
        assert sizes["now"] == rank["total"]
        assert sizes["shared_code"] == rank["total"] - rank["code"] - rank["rodata"]
        assert sizes["used_stack"] == rank["total"] - rank["stack_unused"]
        assert sizes["differing"] == sizes["now"] - one["pages"]["zero"] - one["pages"]["original"]
        assert sizes["smallest"] == sizes["differing"] - rank["stack_unused"]
        constants = rank["code"] + rank["rodata"]  # as in the original, where they are sent at all
        assert 0 <= one["pages"]["original"] - SAME * PAGE - constants < 4 * PAGE
        assert (one["pages"]["zero"], one["pages"]["common"]) == truth[rank["rank"]]
        assert one["pages"]["zero"] >= EMPTY * PAGE
        assert one["pages"]["common"] >= (SAME + EQUAL + PAIRED * (one["rank"] < 2)) * PAGE
        assert sizes["smallest"] >= (WRITTEN + EQUAL + PAIRED) * PAGE
        assert one["seconds"]["now"] == pytest.approx(10e-6 + sizes["now"] / 1e9)


@pytest.mark.parametrize("words", [("--bandwidth", "much"), ("--bandwidth", "0GB/s"), ("--latency", "soon")])
def test_rates_that_make_no_sense(words: tuple[str, str], start_job: StartJob, tmp_path: Path) -> None:
    source, program = tmp_path / "pages.c", tmp_path / "pages"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 2, program)
    job.wait_until_still()
    command = [str(built("inspector")), "payload", str(job.pid), "--what-if", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and repr(words[1]) in done.stderr and "Traceback" not in done.stderr
