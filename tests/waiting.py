"""Waiting for what has no pipe to say that it has happened: files, the kernel's view of a process, a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar, Union

import pytest

Found = TypeVar("Found")
PATIENCE = 60.0  # seconds; what is waited for takes far less, also on a busy machine
BETWEEN = 0.005  # seconds


def wait_until(happened: Callable[[], Found], lacking: Union[str, Callable[[], str]]) -> Found:
    """The first true answer of `happened`; without one in PATIENCE seconds the test fails with what is `lacking`."""
    deadline = time.monotonic() + PATIENCE
    while not (found := happened()):
        if time.monotonic() > deadline:
            pytest.fail(lacking if isinstance(lacking, str) else lacking())
        time.sleep(BETWEEN)
    return found
