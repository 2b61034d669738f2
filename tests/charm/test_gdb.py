"""GDB on stock AMPI under every method: each rank's own global, and the stacks of ranks that wait.

In C and, where the oracle can't ask (test_oracle.py), in C++ and Fortran.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.charm.jobs import AMPICC, METHODS, RANKS, Running, build, running
from tests.support.debuggers import find_gdb
from tests.support.running import ROOT

COMMANDS = (
    "rank list", "rank print g_rank", "rank 2", "rank", "rank info 2", "bt", "up", "print g_rank", "rank 0", "up 3",
    "print g_rank", "print &g_rank", "rank tree", "rank bt blocked", "detach", "echo The session goes on\\n",
)  # fmt: skip
PROGRAMS = [(method, "c") for method in METHODS] + [
    (method, one) for method in ("tls", "none") for one in ("cpp", "f90")
]
pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),  # the debug information of a debug build of Charm++ is large
]


@pytest.fixture(scope="module", params=PROGRAMS, ids=["-".join(program) for program in PROGRAMS])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Running]]:
    method, language = request.param
    folder = tmp_path_factory.mktemp(f"{method}-{language}")
    build(folder, method, language)
    with running(folder) as up:
        yield method, language, up


def test_gdb_sees_every_rank(job: tuple[str, str, Running]) -> None:
    method, language, up = job
    # stderr, too: warnings
    command = [str(find_gdb()), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(up.pid)]
    for one in (f"source {ROOT / 'gdbext' / 'rank.py'}", *COMMANDS):
        command += ["-ex", one]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    said, main = done.stdout, "mpi_main" if language == "f90" else "AMPI_Main"
    if method != "none":  # one variable for all
        assert all(f"\n{rank}: {rank}\n" in said for rank in range(RANKS)), said
        assert re.search(r"^\$1 = 2$", said, re.MULTILINE), said  # suspended
        assert re.search(r"^\$2 = 0$", said, re.MULTILINE), said  # running
    assert re.search(rf"^\$3 = \(.*\) {up.truth[0].global_address}\b", said, re.MULTILINE), said
    place = rf"{main} at prog\.{language}:\d+"
    call = "MPI_Recv(?: from 0, tag 9)?"  # by the debug information of a debug build
    assert len(re.findall(rf"^ +[1-3] +blocked .* {call} +{place}$", said, re.MULTILINE)) == RANKS - 1, said
    # Every command says it as the list does, sets of ranks included.
    for start in ("[Switching to rank 2", "Rank 2 is selected because you asked for it:", "Rank 2 of 4"):
        assert re.search(re.escape(start) + r",? blocked in MPI_Recv\b", said), said
    assert re.findall(rf"^Rank (\d), blocked in {call}:$", said, re.MULTILINE) == ["1", "2", "3"], said
    # Production builds have no debug information, and GDB takes either name of the function. What is inside it is not
    # shown, also where the program is in one file with it.
    shown = (
        rf"^\(\d+ frames of the runtime folded\)\n#\d+ .*\bP?mpi_recv_? .*\n#\d+ .*\b{main} \(.*\) at prog\.{language}:"
    )
    assert re.search(shown, said, re.MULTILINE | re.IGNORECASE), said
    assert re.search(rf"{place}(,\d+)*  \[0-3\]", said), said
    assert "The session goes on" in said and done.returncode == 0, said
