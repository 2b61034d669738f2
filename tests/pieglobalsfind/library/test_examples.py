"""The examples of docs/library.md print what stands below them, and its test reports where a job hangs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pieglobalsfind
from tests.support.running import BIN, ROOT, Job
from tests.support.waiting import wait_until

PAGE = (ROOT / "docs" / "library.md").read_text()
BLOCKS = re.findall(r"```python( pytest)?\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = [(code, output) for is_test, code, output in BLOCKS if not is_test]
TESTS = [(code, output) for is_test, code, output in BLOCKS if is_test]


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2 and len(TESTS) == 1


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples(held: Job, number: int) -> None:
    code, output = EXAMPLES[number]
    done = subprocess.run(
        [sys.executable, "-c", code, str(held.pid)], capture_output=True, text=True, cwd=ROOT, timeout=60
    )
    assert (done.stdout, done.stderr) == (output, "")


def ranks_below(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for one in found for below in ranks_below(one)]


def test_the_recipe_for_hangs(ring: Path, tmp_path: Path) -> None:
    """Its time is so short that the job hangs already, or has not begun to: both are reported, and the job ends."""
    code, _ = TESTS[0]
    (tmp_path / "test_ring.py").write_text(code)
    path = f"{BIN}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "RING": str(ring), "RING_SECONDS": "0.01", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_ring.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "HangError: the job still ran after 0.01 s" in done.stdout, done.stdout


@pytest.mark.parametrize("launcher", [[], ["/bin/sh", "-c", '"$@"; exit 3', "sh"]], ids=["itself", "a shell"])
def test_a_hang(ring: Path, rankrun: Path, tmp_path: Path, launcher: list[str]) -> None:
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen([*launcher, rankrun, "-n", "4", ring], stderr=errors, stdout=subprocess.DEVNULL)
    wait_until(lambda: "waits for a debugger" in (tmp_path / "errors").read_text(), "the ranks never stood still")
    below = ranks_below(process.pid)
    with pytest.raises(pieglobalsfind.HangError) as raised:
        pieglobalsfind.wait(process, timeout=0.01)
    expected = [line[1:].strip() for line in TESTS[0][1].splitlines()][1:]
    assert str(raised.value).splitlines()[1:] == expected
    assert sorted(raised.value.stacks) == [0, 1, 2, 3]
    assert process.returncode is not None
    wait_until(lambda: not any(is_running(one) for one in below), "processes of the job are left")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
