"""How a command ends, whatever happens while it runs."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.shell.exit_status import status_of


def refuse() -> int:
    raise UsageError("it makes no\nsense\033[31m", "don't")


def take_all_memory() -> int:
    return len(bytes(1 << 62))


def open_too_long_a_name() -> int:
    return os.open("x" * 300, os.O_RDONLY)


def fill_the_disk() -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("run", "status", "said"),
    [
        (lambda: 1, 1, ""),
        (refuse, 2, "tool: it makes no\\012sense\\033[31m: don't\n"),
        (take_all_memory, 2, "tool: there is not enough memory for this: see `ulimit -v`\n"),
        (open_too_long_a_name, 2, f"tool: '{'x' * 300}' can't be used, file name too long\n"),
        (fill_the_disk, 2, "tool: standard output can't be written, no space left on device\n"),
    ],
)
def test_an_end(run: Callable[[], int], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("tool", lambda: run) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", said)
