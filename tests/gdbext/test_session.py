"""The session itself: a GDB that hangs takes along what it launched."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path

from tests.support.host.script import end_with_what_it_launched

PATIENCE = 60  # seconds until a killed process must have ended
HANG = """
set startup-with-shell off
starti
python
import time
pid = gdb.selected_inferior().pid
gdb.execute("detach")
print("launched", pid, flush=True)
while True:
    time.sleep(60)
end
"""


def test_what_a_hanging_debugger_launched_ends(gdb: Path, tmp_path: Path) -> None:
    """Detached from: GDB's end alone would not end it."""
    script = tmp_path / "hang.gdb"
    script.write_text(HANG)
    command = [str(gdb), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-x", str(script)]
    debugger = subprocess.Popen(
        [*command, "--args", "sleep", "1000000"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert debugger.stdout is not None
    pid = next(int(line.split()[1]) for line in debugger.stdout if line.startswith("launched"))
    watched = os.pidfd_open(pid)
    try:
        end_with_what_it_launched(debugger)
        assert select.select([watched], [], [], PATIENCE)[0], "the program goes on"
    finally:
        os.close(watched)
        debugger.stdout.close()
