"""GDB under each method where it has no process of this machine: behind a stub, and in a core file of the kernel."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.gdbext.symbols.test_reach import CORE_PATTERN
from tests.methods.matrix import METHODS
from tests.methods.test_tools import CXX, EXPRESSIONS, GDB_SCRIPT, asked
from tests.support.gdb.session import Session as Gdb
from tests.support.methods import Held, Truth
from tests.support.running import Job, built
from tests.support.stubs import stub
from tests.support.waiting import wait_until

MORE = """
tell("first", value("$_rank"))
tell("info", [ask("rank info %d" % rank) for rank in {ranks}])
tell("list", ask("rank list"))
"""
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture
def cores() -> Iterator[None]:
    """Processes that are started meanwhile leave core files where they are."""
    if CORE_PATTERN.read_text().strip() != "core":
        pytest.skip(f"core files of this machine go to {CORE_PATTERN.read_text().strip()!r}")
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def script_for(held: Held, ranks: list[int]) -> str:
    expressions = {name: EXPRESSIONS.get(name, name) for name in asked(held, CXX, "GDB", "core")}
    return MORE.format(ranks=ranks) + GDB_SCRIPT.format(ranks=ranks, expressions=expressions)


def check(told: Any, held: Held, ranks: list[int]) -> None:
    assert told["first"] == (held.running if held.running in ranks else -1), told.output
    for rank, info in zip(ranks, told["info"]):
        assert info.startswith(f"Rank {rank} of {len(held.truth)}, "), info
        for name in asked(held, CXX, "GDB", "core"):
            truth = held.truth[rank][name]
            assert Truth(int(told[f"&{name} {rank}"]), int(told[f"{name} {rank}"])) == truth, (rank, name, told.output)
        names = [name.partition("(")[0].lstrip(":") for name in told[f"bt {rank}"]]
        assert names[names.index("hold") + 1] == "main", (rank, names)


@each_method
def test_behind_a_stub(method: str, held: Held, gdb: Path, tmp_path: Path) -> None:
    for process, ranks in islice(held.by_process().items(), 2):  # pipprocess has one for each rank: two show it
        with stub("gdbserver", process) as port:
            attach = f'gdb.execute("target remote localhost:{port}")\n'
            check(Gdb(gdb, tmp_path).run(attach + script_for(held, ranks)), held, ranks)


@each_method
def test_a_core_file_of_the_kernel(method: str, cores: None, held: Held, gdb: Path, tmp_path: Path) -> None:
    process, ranks = next(iter(held.by_process().items()))
    core = crashed(held.job, process, tmp_path)
    check(Gdb(gdb, tmp_path).run(script_for(held, ranks), built("rankrun").resolve(), "-c", core), held, ranks)


def crashed(job: Job, process: int, folder: Path) -> Path:
    """The core file of a process that is made to crash, once the kernel has written it."""
    os.kill(process, signal.SIGSEGV)
    if process == job.pid:
        job.finish()
    wait_until(lambda: has_ended(process), f"process {process} has not ended")
    (core,) = folder.glob("core*")
    return core


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except OSError:
        return True
