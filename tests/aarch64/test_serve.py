"""AArch64 ranks as processes of stock debuggers here, by `inspector serve`: values as programs print them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.aarch64.conftest import Aarch64
from tests.aarch64.test_programs import RANKS, all_wait, hold
from tests.support.debuggers import find_lldb
from tests.support.rsp import BASE
from tests.support.running import StartJob, built
from tests.support.waiting import wait_until

SIGNED = ("-mbranch-protection=standard", "-O2")
NAMES = ("exported", "inner", "grid[3]")
# What a rank's functions are called, outermost last; the runtime's own stand before them.
DEEP = ["MPI_Recv", "deep", "deep", "deep", "deep", "main"]


def gdb_of_all() -> str:
    found = shutil.which("gdb-multiarch")
    if found is None:
        pytest.skip("no GDB here debugs AArch64 programs: apt-get install gdb-multiarch")
    return found


def output(command: Sequence[object]) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False)
    return done.stdout + done.stderr


def functions(text: str, pattern: str) -> list[str]:
    """Of the frames that are printed, from MPI_Recv to main."""
    names = re.findall(pattern, text, re.MULTILINE)
    return names[names.index("MPI_Recv") : names.index("main") + 1]


@pytest.mark.parametrize("options", [(), SIGNED], ids=["plain", "signed"])
def test_gdb(aarch64: Aarch64, start_job: StartJob, tmp_path: Path, options: tuple[str, ...]) -> None:
    gdb = gdb_of_all()
    job, printed = hold(aarch64, start_job, "pie", *options)
    wait_until(lambda: all_wait(job.pid), job.stderr)
    script = ["set pagination off", "set sysroot /", "set remotetimeout 60"]
    script += [f"target extended-remote | {built('inspector')} serve {job.pid}"]
    for rank in range(1, RANKS):
        script += [f"attach {BASE + rank}", "bt", *(f"output {name}\necho \\n" for name in NAMES), "p &exported"]
        script += ["info registers v8", "detach"]
    (tmp_path / "script").write_text("\n".join(script))
    shown = output([gdb, "-nx", "-q", "-batch", "-x", tmp_path / "script"])
    assert "not compatible" not in shown
    stacks = shown.split("\n#0 ")[1:]
    assert len(stacks) == RANKS - 1, shown
    for rank, text in enumerate(stacks, 1):
        assert functions(text, r"^#\d+ .*? in (\w+)") == DEEP, text
        address, exported, inner, last, _ = printed[rank]
        assert [line for line in text.splitlines() if line in (exported, inner, last)] == [exported, inner, last], text
        assert f"(int *) {address} <exported>" in text and re.search(r"v8 +<unavailable>", text), text


@pytest.mark.parametrize("options", [(), SIGNED], ids=["plain", "signed"])
def test_lldb(aarch64: Aarch64, start_job: StartJob, options: tuple[str, ...]) -> None:
    lldb = find_lldb()
    job, printed = hold(aarch64, start_job, "pie", *options)
    wait_until(lambda: all_wait(job.pid), job.stderr)
    server = start_job(built("inspector"), "serve", job.pid, "--rank", 1, "--port", 0)
    port = server.wait_for("serving at").partition("127.0.0.1:")[2].partition(",")[0]
    commands = [f"gdb-remote 127.0.0.1:{port}", "bt", "target variable exported inner grid", "register read x0 x29 pc"]
    words = [word for command in commands for word in ("-o", command)]
    program = aarch64.built("pie", *options)
    text = output([lldb, "--no-lldbinit", "-b", *words, program])
    assert functions(text, r"frame #\d+: \S+ \S+`(\w+)") == DEEP, text
    _, exported, inner, last, _ = printed[1]
    assert f"exported = {exported}\n" in text and f"inner = {inner}\n" in text and f"[3] = {last})" in text, text
    assert re.search(r"Invalid register name 'x0'", text) and re.search(r" pc = 0x", text), text


def test_control_is_refused(aarch64: Aarch64, start_job: StartJob) -> None:
    job, _ = hold(aarch64, start_job, "pie")
    refused = output([built("inspector"), "serve", job.pid, "--control"])
    assert refused == "inspector: ranks of AArch64 programs can't be controlled: leave --control out\n"
