"""GDB on stock AMPI under every method: each rank's own global, and the stacks of ranks that wait."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.charm.jobs import AMPICC, METHODS, RANKS, Running, build, running
from tests.conftest import ROOT

COMMANDS = (
    "rank list", "rank print g_rank", "rank 2", "rank", "rank info 2", "print g_rank", "bt", "rank 0", "print g_rank",
    "print &g_rank", "rank tree", "rank bt blocked",
)  # fmt: skip
pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),  # the debug information of a debug build of Charm++ is large
]


@pytest.fixture(scope="module", params=METHODS)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Running]]:
    folder = tmp_path_factory.mktemp(request.param)
    build(folder, request.param, "c")
    with running(folder) as up:
        yield request.param, up


def test_gdb_sees_every_rank(job: tuple[str, Running]) -> None:
    method, up = job
    # stderr, too: warnings
    command = ["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(up.pid)]
    for one in (f"source {ROOT / 'gdbext' / 'rank.py'}", *COMMANDS):
        command += ["-ex", one]
    said = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
        stdin=subprocess.DEVNULL,
        check=False,
    ).stdout
    if method != "none":  # one variable for all
        assert all(f"\n{rank}: {rank}\n" in said for rank in range(RANKS)), said
        assert re.search(r"^\$1 = 2$", said, re.MULTILINE), said  # suspended
        assert re.search(r"^\$2 = 0$", said, re.MULTILINE), said  # running
        assert f"$3 = (int *) {up.truth[0].global_address}" in said
    assert len(re.findall(r"^ +[1-3] +blocked .* MPI_Recv ", said, re.MULTILINE)) == RANKS - 1, said
    # Every command says it as the list does, sets of ranks included.
    for start in ("[Switching to rank 2", "Rank 2 is selected because you asked for it:", "Rank 2 of 4"):
        assert re.search(re.escape(start) + r",? blocked in MPI_Recv\b", said), said
    assert re.findall(r"^Rank (\d), blocked in MPI_Recv:$", said, re.MULTILINE) == ["1", "2", "3"], said
    # Production builds have no debug information, and GDB takes either name of the function.
    call = r"^#\d+ +(?:0x[0-9a-f]+ in )?P?MPI_Recv .*\n#\d+ +0x[0-9a-f]+ in AMPI_Main \(.*\) at prog\.c:\d+$"
    assert re.search(call, said, re.MULTILINE), said
    assert re.search(r"AMPI_Main at prog\.c:\d+(,\d+)*  \[0-3\]", said), said
