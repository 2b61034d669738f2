"""Waiting for what has no pipe to say that it has happened: files, the kernel's view of a process, a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, Union

import pytest

Found = TypeVar("Found")
PATIENCE = 60.0  # seconds; what is waited for takes far less, also on a busy machine
BETWEEN = 0.005  # seconds
LOOPED = 3  # ticks of the kernel's clock; nobody prints a line for that long


def wait_until(happened: Callable[[], Found], lacking: Union[str, Callable[[], str]]) -> Found:
    """The first true answer of `happened`; without one in PATIENCE seconds the test fails with what is `lacking`."""
    deadline = time.monotonic() + PATIENCE
    while not (found := happened()):
        if time.monotonic() > deadline:
            pytest.fail(lacking if isinstance(lacking, str) else lacking())
        time.sleep(BETWEEN)
    return found


def user_ticks(pid: int) -> dict[str, int]:
    """By thread, the time that the process has spent in its own code."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {task.name: int((task / "stat").read_text().rpartition(") ")[2].split()[11]) for task in tasks}


def wait_until_it_loops(pid: int, threads: int = 1) -> None:
    """Until so many threads of the process are in the endless loop that is behind the last line that it printed."""
    before = user_ticks(pid)

    def loops() -> bool:
        return sum(now - before.get(name, 0) >= LOOPED for name, now in user_ticks(pid).items()) >= threads

    wait_until(loops, f"process {pid} never came to a loop")
