"""`inspector payload` against the bytes that the runtime sends, rank by rank."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.job_programs import Build

IN_GDB = """
set pagination off
set confirm off
set detach-on-fork off
set schedule-multiple on
set breakpoint pending on
set print inferior-events off
break rank_debug_event if $rdi == 4
run
python
import subprocess
for _ in range({ranks}):
    pid = gdb.selected_inferior().pid
    rank = int(gdb.parse_and_eval("$rsi"))
    with open("{folder}/payload.%d" % rank, "wb") as file:
        command = ["{inspector}", "payload", "--what-if", "--json", str(pid)]
        subprocess.run(command, stdout=file, env={environment}, check=True)
    gdb.execute("continue")
while any(one.pid for one in gdb.inferiors()):
    gdb.execute("inferior %d" % next(one.num for one in gdb.inferiors() if one.pid))
    gdb.execute("continue")
end
"""


@pytest.mark.parametrize("mode", ["whole", "lean"])
def test_predicted_bytes_are_sent(
    mode: str, build: Build, gdb: Path, inspector: Path, rankrun: Path, tmp_path: Path
) -> None:
    """Each rank's payload is read where GDB has stopped the job right before that rank is packed."""
    megabytes = 14 if mode == "lean" else 2
    program = build("image.c", f"-DMEGABYTES={megabytes}")
    log, script = tmp_path / "moves", tmp_path / "script.gdb"
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    script.write_text(IN_GDB.format(ranks=4, folder=tmp_path, inspector=inspector, environment=repr(environment)))
    job = [rankrun, "-n", 4, "--procs", 2, "--migrate", mode, "--migration-log", log, program]
    command = [gdb, "-nx", "-q", "-batch", "-x", script, "--args", *job]
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=240)
    moves = {one["rank"]: one for one in map(json.loads, log.read_text().splitlines())}
    assert set(moves) == set(range(4)), done.stdout + done.stderr
    for rank, move in moves.items():
        predicted = json.loads((tmp_path / f"payload.{rank}").read_text())
        (sizes,) = (one["bytes"] for one in predicted["what_if"] if one["rank"] == rank)
        assert move["whole"] == sizes["now"] > megabytes << 20
        # What the kernel has taken from sendmsg(2), less the frame, the ticket and the table of pieces.
        sent = move["bytes_on_the_wire"] - move["envelope"]
        assert sent == (sizes["now"] if mode == "whole" else sizes["smallest"])
        assert mode == "whole" or sent < sizes["now"] / 500, "as docs/jobs.md has it, 1/686"
