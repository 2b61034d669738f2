"""LLDB on AMPI under every method, stock and with the hook: each rank's own global, suspended and running ranks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, BOTH, METHODS, RANKS, Running, build, gated, running
from tests.support.debuggers import find_lldb
from tests.support.running import ROOT

LLDB = str(find_lldb()) if AMPICC else ""
pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),
]
COMMANDS = (
    "thread list",
    "rank list",
    "rank print g_rank",
    "rank 2",
    "p g_rank",
    "bt",
    "rank bt",
    "rank 0",
    "p g_rank",
    "rank tree",
)
PROGRAMS = [(method, False) for method in METHODS] + [("pie", True), ("tls", True)]


@pytest.fixture(scope="module", params=PROGRAMS, ids=[f"{one}-{'hook' if hook else 'stock'}" for one, hook in PROGRAMS])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Running]]:
    method, with_hook = request.param
    folder = tmp_path_factory.mktemp(method)
    build(folder, method, "c", with_hook)
    with running(folder) as up:
        yield method, up


def test_lldb_sees_every_rank(job: tuple[str, Running]) -> None:
    method, up = job
    command = [LLDB, "-x", "-b", "-p", str(up.pid), "-o", f"command script import {ROOT / 'lldbext'}"]
    for one in COMMANDS:
        command += ["-o", one]
    said = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
        stdin=subprocess.DEVNULL,
        check=False,
    ).stdout
    assert " added to breakpoint " not in said, said  # of ours nothing is said
    if method == "none":
        assert len(re.findall(r"^\d: \d \(one for all ranks\)$", said, re.MULTILINE)) == RANKS, said
    else:
        assert all(f"\n{rank}: {rank}\n" in said for rank in range(RANKS)), said
        assert re.findall(r"^\(int\) (\d)$", said, re.MULTILINE) == ["2", "0"], said  # suspended, running
    assert len(re.findall(r"^ +[1-3] +blocked .* MPI_Recv ", said, re.MULTILINE)) == RANKS - 1, said
    names = dict(re.findall(r"thread #.* name = 'rank (\d): ([a-z]+)", said.partition("rank list")[0]))
    assert names == {"0": "running", **dict.fromkeys("123", "suspended")}, said
    # Production builds have no debug information.
    assert re.search(r"^#\d+ .*\bP?MPI_Recv .*\n#\d+ .*\bAMPI_Main ", said, re.MULTILINE), said
    # LLDB may end stacks once it has walked through a function that the compiler has split (docs/lldb.md).
    whole = r"frame #\d+: 0x\w+ \S+`(?:::)?P?MPI_Recv.*\n +frame #\d+: 0x\w+ \S+`AMPI_Main"
    assert re.search(rf"{whole}|frame #\d+: 0x\w+ \S+`CthResume.*\n\(lldb\)", said), said
    assert re.search(r"AMPI_Main at prog\.c:\d+(,\d+)*  \[0-3\]", said), said


@pytest.mark.parametrize("method", ["pie", BOTH])
def test_one_lldb_has_both_processes_as_targets(method: str, tmp_path: Path) -> None:
    """Each target's ranks are its process's own, and who asks for another's is told so."""
    build(tmp_path, method, "gated.c")
    with gated(tmp_path, 4) as (_, found):
        (first, ranks), (second, others) = sorted(found.items())
        values = [f"{rank}: {rank}" for rank in sorted(others)]
        command = [LLDB, "-x", "-b", "-p", str(first), "-o", f"command script import {ROOT / 'lldbext'}"]
        for one in (
            "rank print g_rank",
            f"target create {tmp_path / 'prog'}",
            f"process attach -p {second}",
            "rank print g_rank",
            "target select 0",
            "rank print g_rank",
            f"rank {min(others)}",
        ):
            command += ["-o", one]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL, check=False
        )
    own = [f"{rank}: {rank}" for rank in sorted(ranks)]
    assert re.findall(r"^\d: \d$", done.stdout, re.MULTILINE) == [*own, *values, *own], done.stdout + done.stderr
    assert f"error: rank {min(others)} lives in another process of the job" in done.stdout + done.stderr
