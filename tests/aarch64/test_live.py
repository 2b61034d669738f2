"""Both debuggers with the extension on an AArch64 process under qemu-user, by the emulator's stub, from its start.

A breakpoint with a condition in ranks, a step, stacks and values; the oracle is what the program computes.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aarch64.conftest import Aarch64
from tests.aarch64.test_programs import RANKS, expected
from tests.aarch64.test_serve import NAMES, gdb_of_all, output
from tests.support.debuggers import find_lldb
from tests.support.running import ROOT
from tests.support.waiting import wait_until

OLDEST = 10  # older stubs call every process 1 and send no files; those between were not tried


@pytest.fixture
def stub(aarch64: Aarch64, tmp_path: Path) -> Iterator[Path]:
    """The socket at which the program waits for a debugger, before its first instruction."""
    told = subprocess.run([aarch64.emulator, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"version (\d+)\.", told)
    assert version is not None, told
    if int(version.group(1)) < OLDEST:
        pytest.skip(f"the stub of QEMU {version.group(1)} sends no files to debuggers: QEMU {OLDEST}'s does")
    emulator, *words = (str(word) for word in aarch64.command("pie", aarch64.built("pie"), RANKS))
    socket = tmp_path / "stub"
    process = subprocess.Popen(
        [emulator, "-g", str(socket), *words, "wait"],
        env=aarch64.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    wait_until(socket.exists, "the emulator does not wait for a debugger")
    yield socket
    process.kill()
    process.wait()


def check(text: str, frames: str) -> None:
    """Each rank but the first stops once in its own `deep`, four calls below main, with its own variables."""
    stops = text.split("it stopped\n")[1:]
    assert len(stops) == RANKS - 1, text
    for rank, shown in enumerate(stops, 1):
        stack = re.findall(frames, shown, re.MULTILINE)
        assert stack[:5] == [("deep", "0"), ("deep", "1"), ("deep", "2"), ("deep", "3"), ("main", "2")], text
        exported, inner, last, _ = expected(rank, 100 * rank)
        assert re.findall(r"\$\d+ = (\S+)", shown)[:3] == [exported, inner, last], text
        assert re.search(r"\bdeep\b.*program\.c:19", shown), text  # after the step, below the condition
    of_all = re.findall(r"^(\d): (\d+)$", stops[-1], re.MULTILINE)
    assert of_all == [(str(rank), expected(rank, 100 * rank)[0]) for rank in range(RANKS)], text
    assert re.search(r"^\* +2 +running .* deep at program\.c:19$", stops[-1], re.MULTILINE), text
    assert re.search(r"MPI_Iprobe.*\n.*\bmain\b.*program\.c:\d+", stops[-1]), text  # rank 0, by `rank 0` and `bt`


def test_gdb(aarch64: Aarch64, stub: Path) -> None:
    look = ["echo it stopped\\n", "bt", *(f"print {name}" for name in NAMES), "next", "bt 1"]
    script = [f"target remote {stub}", f"source {ROOT / 'gdbext' / 'rank.py'}", "break deep if depth == 0", "continue"]
    script += [*look, "continue", *look, "rank print exported", "rank list", "rank 0", "bt", "kill"]
    words = ["-iex", "set confirm off", "-iex", "set breakpoint pending on", aarch64.runtime / "bin" / "rankrun"]
    words += [word for command in script for word in ("-ex", command)]
    text = output([gdb_of_all(), "-nx", "-q", "-batch", *words])
    check(text, r"^#\d+ .*?(deep|main) \(\w+=(\d+)")


def test_lldb(aarch64: Aarch64, stub: Path) -> None:
    look = ["script print('it stopped')", "bt", *(f"expression -- {name}" for name in NAMES), "next", "bt"]
    script = [f"process connect --plugin gdb-remote unix-connect://{stub}", f"command script import {ROOT / 'lldbext'}"]
    script += ["breakpoint set -n deep -c 'depth == 0'", "continue", *look, "continue", *look]
    script += ["rank print exported", "rank list", "rank 0", "bt", "process kill"]
    words = [word for command in script for word in ("-o", command)]
    text = output([find_lldb(), "--no-lldbinit", "-b", aarch64.runtime / "bin" / "rankrun", *words])
    check(text, r"frame #\d+: .*?`(deep|main)\(\w+=(\d+)")
