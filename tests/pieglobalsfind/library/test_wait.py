"""`pieglobalsfind.wait()` of a job that ends, and of processes without ranks that do not."""

from __future__ import annotations

import subprocess

import pytest

import pieglobalsfind


def test_a_job_that_ends() -> None:
    assert pieglobalsfind.wait(subprocess.Popen(["/bin/sh", "-c", "exit 3"]), timeout=60) == 3


def test_a_hang_without_ranks() -> None:
    process = subprocess.Popen(["/bin/sleep", "1000"])
    with pytest.raises(pieglobalsfind.HangError, match="its ranks can't be read"):
        pieglobalsfind.wait(process, timeout=0.01)
    assert process.returncode == -9
