"""How a command ends, whatever happens while it runs."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.shell import status_of
from tests.conftest import ROOT, hear_interrupts


def refuse() -> int:
    raise UsageError("it makes no\nsense\033[31m", "don't")


def take_all_memory() -> int:
    return len(bytes(1 << 62))


def open_too_long_a_name() -> int:
    return os.open("x" * 300, os.O_RDONLY)


def fill_the_disk() -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def lose_patience() -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("run", "status", "said"),
    [
        (lambda: 1, 1, ""),
        (refuse, 2, "tool: it makes no\\012sense\\033[31m: don't\n"),
        (take_all_memory, 2, "tool: there is not enough memory for this: see `ulimit -v`\n"),
        (open_too_long_a_name, 2, f"tool: '{'x' * 300}' can't be used, file name too long\n"),
        (fill_the_disk, 2, "tool: standard output can't be written, no space left on device\n"),
        (lose_patience, 130, ""),
    ],
)
def test_an_end(run: Callable[[], int], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("tool", lambda: run) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", said)


SWALLOWING = """
import signal, sys, time
from pieglobalsfind.shell import status_of

class Interrupted:
    def __del__(self):
        signal.raise_signal(int(sys.argv[1]))
        time.sleep(0)

def run():
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    Interrupted()
    while True:
        signal.pause()

sys.exit(status_of("tool", lambda: run))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_destructor_is_not_lost(number: signal.Signals) -> None:
    """Python says that it ignores the exception, and goes on."""
    command = [sys.executable, "-c", SWALLOWING, str(int(number))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, preexec_fn=hear_interrupts, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")
