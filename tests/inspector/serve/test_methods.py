"""Every method of privatization through the server: stock GDB says of each rank what the rank says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.methods.matrix import BYTE_COPIES, METHODS
from tests.support.gdb.session import Session
from tests.support.methods import compile_kinds, hold
from tests.support.rsp import is_stopped
from tests.support.running import StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

EXPRESSIONS = {
    "exported": "exported",
    "file_static": "file_static",
    "counter": "'function_static()'::counter",
    "per_thread": "per_thread",
    "inlined": "simulation::inlined",
}
SCRIPT = """
ask("set sysroot /")
ask("set remotetimeout 60")
for rank, pid in PROCESSES.items():
    ask("target extended-remote | INSPECTOR serve %d --rank %d" % (pid, rank))
    values = {name: ask("output " + expression) for name, expression in EXPRESSIONS.items()}
    tell(str(rank), [values, functions()])
    ask("detach")
    ask("disconnect")
"""


@pytest.mark.parametrize("method", METHODS)
def test_variables_and_stacks(method: str, gdb: Path, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """The first rank runs, the others are suspended."""
    held = hold(start_job, method, compile_kinds(method, tmp_path, shared), "spin")
    processes = {rank: held.process_of(rank) for rank in held.truth}
    words = {"PROCESSES": repr(processes), "INSPECTOR": str(built("inspector")), "EXPRESSIONS": repr(EXPRESSIONS)}
    script = SCRIPT
    for name, value in words.items():
        script = script.replace(name, value)
    answers = Session(gdb, tmp_path).run(script, source=False)
    for rank, truth in held.truth.items():
        values, functions = answers[str(rank)]
        assert functions[-1] == "main" and "hold" in functions, functions
        for name in EXPRESSIONS:
            if name != "per_thread" or method not in BYTE_COPIES:
                assert values[name] == str(truth[name].value), (rank, name, values)
    for pid in processes.values():
        wait_until(lambda pid=pid: not is_stopped(pid), f"process {pid} was left stopped")  # type: ignore[misc]
