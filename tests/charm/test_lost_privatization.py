"""Where stock AMPI has privatized nothing, every tool shows the variables that the program prints, and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, RANKS, SOURCES, Running, build, running
from tests.support.debuggers import find_gdb
from tests.support.gdb.places import make_core
from tests.support.running import ROOT

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
SOURCE = (
    SOURCES["c"]
    .replace("PRIVATE int g_rank = -1;", "static __thread int small = 3; static int hidden; int g_rank = -1;")
    .replace("g_rank = me;", "g_rank = small = me; hidden = 100 + me;")
)
SAID = "privatization of prog.user.so failed in 4 of 4 ranks: its writable segment begins at no multiple of 8"


@pytest.fixture(scope="module", params=[False, True], ids=["stock", "hook"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("lost")
    build(folder, "pie", "c", with_hook=request.param, source=SOURCE)
    with running(folder) as up:
        assert len({truth.global_address for truth in up.truth.values()}) == 1, "AMPI has privatized it"
        yield up


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def value_at(job: Running, address: str) -> int:
    with Path(f"/proc/{job.pid}/mem").open("rb") as memory:
        memory.seek(int(address, 16))
        return int.from_bytes(memory.read(4), sys.byteorder, signed=True)


@pytest.mark.parametrize("kind", ["live", "core"])
def test_the_inspector(job: Running, kind: str, tmp_path: Path) -> None:
    target = job.pid if kind == "live" else make_core(job.pid, tmp_path)
    done = run(sys.executable, "-m", "inspector", "globals", target, "--json")
    found = {load["name"]: load for load in json.loads(done.stdout)["globals"]}
    (shared,) = found["g_rank"]["groups"]
    assert shared == {"ranks": "0-3", "value": str(value_at(job, job.truth[0].global_address))}
    assert found["g_rank"]["verdict"] == "shared"
    assert [one["value"] for one in found["hidden"]["groups"]] == ["100", "101", "102", "103"]
    assert SAID in done.stderr
    (alarm,) = json.loads(run(sys.executable, "-m", "inspector", "pointers", target, "--json").stdout)["alarms"]
    assert "relocated words still name the original" in alarm["sentence"]


@pytest.mark.parametrize("kind", ["live", "core"])
def test_gdb(job: Running, kind: str, tmp_path: Path) -> None:
    target = ["-p", job.pid] if kind == "live" else [job.folder / "prog", make_core(job.pid, tmp_path)]
    commands = [f"source {ROOT}/gdbext/rank.py"]
    for rank in range(RANKS):
        commands += [f"rank {rank}", 'printf "%d %p %d\\n", g_rank, &g_rank, hidden']
    words = [word for command in (*commands, "rank print g_rank") for word in ("-ex", command)]
    shown = run(find_gdb(), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", *target, *words).stdout
    address = job.truth[0].global_address
    value = value_at(job, address)
    for rank in range(RANKS):
        assert f"\n{value} {address} {100 + rank}\n" in shown
        assert f"\n{rank}: {value} (in the unprivatized original, not this rank's)" in shown


def test_pieglobalsfind(job: Running) -> None:
    done = run(sys.executable, "-m", "pieglobalsfind", "--pid", job.pid, job.truth[0].global_address)
    assert "original" in done.stdout and "g_rank+0x0" in done.stdout and SAID in done.stderr
