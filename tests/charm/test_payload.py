"""`inspector payload` against the bytes of a rank's memory that AMPI packs when the rank migrates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, METHODS, build, gated
from tests.support.debuggers import find_gdb
from tests.support.running import ROOT

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 4
# PUP::toMem::pup_buffer(void *&, size_t, size_t, PUP::dataType, std::function, std::function): where a rank's memory is
# handed over in whole (pup.h)
PACKS = "_ZN3PUP5toMem10pup_bufferERPvmmNS_8dataTypeESt8functionIFS1_mEES4_IFvS1_EE"
RANKS_BY_START = """
import json, sys
from pieglobalsfind.decoders import decode
from pieglobalsfind.targets import open_target
print(json.dumps({one.range.start: one.rank for one in decode(open_target(int(sys.argv[1]))).ranks}))
"""
# AMPI has begun to take the rank apart where it packs: its parts are read before the job is let go, with nothing to
# allocate between.
IN_GDB = """
import json, subprocess
def told(*words):
    done = subprocess.run(["{python}", *words], stdout=subprocess.PIPE, env={environment}, check=True)
    return json.loads(done.stdout)
gdb.execute("break *%d" % int(gdb.parse_and_eval("(long) &{packs}")))
pid = str(gdb.selected_inferior().pid)
payload = told("-m", "inspector", "payload", "--json", pid)["payload"]
starts = told("-c", {by_start}, pid)
open("go", "w").close()
gdb.execute("continue")
start = int(gdb.parse_and_eval("*(unsigned long *) $rsi"))
packed = int(gdb.parse_and_eval("$rdx * $rcx"))
with open("told", "w") as file:
    json.dump({{"packed": packed, "rank": starts[str(start)], "payload": payload}}, file)
gdb.execute("delete")
gdb.execute("detach")
"""


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("pip", "fs")])
def test_what_ampi_packs_is_what_was_predicted(method: str, tmp_path: Path) -> None:
    """Both are taken where AMPI hands the first rank's memory to its packer; the job ends well afterwards."""
    build(tmp_path, method, "gated.c")
    script = tmp_path / "script.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = {"python": sys.executable, "environment": repr(environment), "by_start": repr(RANKS_BY_START)}
    script.write_text(IN_GDB.format(**words, packs=PACKS))
    with gated(tmp_path, RANKS) as (job, found):
        command = [str(find_gdb()), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(min(found))]
        done = subprocess.run(
            [*command, "-x", str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
        )
        assert (tmp_path / "told").exists(), done.stdout + done.stderr
        assert job.stdout is not None and "TURN 2" in job.stdout.read()
        assert job.wait(timeout=60) == 0
    told = json.loads((tmp_path / "told").read_text())
    (payload,) = (one for one in told["payload"] if one["rank"] == told["rank"])
    assert payload["total"] == told["packed"], payload
