"""SMPI's ranks through the server: stock GDB says of each rank what the rank says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.rsp import is_stopped
from tests.support.running import StartJob
from tests.support.running import built as command
from tests.support.sharing import Shared
from tests.support.smpi.jobs import built, needs_smpi, start
from tests.support.waiting import wait_until

pytestmark = needs_smpi
RANKS = 3
NAMES = ["g_rank", "s_rank"]  # the program's thread_local is one for all ranks of a kernel thread
SCRIPT = """
ask("set sysroot /")
ask("set remotetimeout 60")
for rank in range(RANKS):
    ask("target extended-remote | INSPECTOR serve PID --rank %d" % rank)
    tell(str(rank), [{name: ask("output " + name) for name in NAMES}, functions()])
    ask("detach")
    ask("disconnect")
"""


@pytest.mark.parametrize("privatization", ["dlopen", "mmap"])
def test_variables_and_stacks(
    privatization: str, gdb: Path, start_job: StartJob, shared: Shared, tmp_path: Path
) -> None:
    running = start(start_job, tmp_path, RANKS, built(shared, "truth.c"), [f"--cfg=smpi/privatization:{privatization}"])
    script = SCRIPT
    words = {"RANKS": RANKS, "INSPECTOR": command("inspector"), "PID": running.pid, "NAMES": NAMES}
    for name, value in words.items():
        script = script.replace(name, str(value))
    answers = Session(gdb, tmp_path).run(script, source=False)
    for rank in range(RANKS):
        values, functions = answers[str(rank)]
        assert "main" in functions, functions
        assert values == {name: str(running.variable(name)[rank].value) for name in NAMES}
    wait_until(lambda: not is_stopped(running.pid), "the job was left stopped")
