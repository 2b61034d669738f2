"""What `inspector audit` says of programs under SMPI, and of a job by the way that it privatizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.jobs import built, needs_smpi, start

pytestmark = needs_smpi


@pytest.mark.parametrize(
    ("privatization", "wanted", "name"),
    [("dlopen", "unique-symbols", "common"), ("mmap", "storage-not-private", "t_rank")],
)
def test_a_job(privatization: str, wanted: str, name: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """C++ inline variables are one for all copies, thread-local ones one for all ranks of a kernel thread."""
    options = [f"--cfg=smpi/privatization:{privatization}"]
    running = start(start_job, tmp_path, 4, built(shared, "truth.cpp"), options)
    command = [sys.executable, "-m", "inspector", "audit", str(running.pid), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    (judged,) = json.loads(done.stdout)["methods"]
    assert judged["method"] == ("fs" if privatization == "dlopen" else "mmap")
    (found,) = [one for one in judged["diagnoses"] if one["id"] == wanted]
    assert name in found["evidence"]
