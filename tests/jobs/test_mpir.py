"""The launcher's table of processes, read by GDB as a parallel debugger reads it (MPIR 1.0)."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.conftest import BIN
from tests.gdb.session import Session

from .conftest import Build


def test_the_table_names_every_process(build: Build, gdb: Path, tmp_path: Path) -> None:
    script = """
    ask("set breakpoint pending on")
    ask("break MPIR_Breakpoint")
    ask("run")
    count = value("MPIR_proctable_size")
    tell("state", value("MPIR_debug_state"))
    tell("pids", [value("MPIR_proctable[%d].pid" % i) for i in range(count)])
    tell("hosts", [ask("print MPIR_proctable[%d].host_name" % i) for i in range(count)])
    pid = gdb.selected_inferior().pid
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        tell("children", [int(one) for one in file.read().split()])
    ask("kill")
    """
    program = build("ends.c")
    told = Session(gdb, tmp_path).run(script, "--args", BIN / "rankrun", "-n", 4, "--procs", 3, program)
    assert told["pids"] == told["children"] and len(told["pids"]) == 3
    assert told["state"] == 1, "MPIR_DEBUG_SPAWNED"
    assert all(socket.gethostname() in one for one in told["hosts"])
