"""Kernel threads of an AArch64 process, by libc's lists: numbers and pthread_self() as the program prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pieglobalsfind.machine.aarch64 import AARCH64
from tests.aarch64.conftest import PREFIX, Aarch64
from tests.pieglobalsfind.decoders.test_libc_threads import check, compiled
from tests.support.running import StartJob


@pytest.mark.parametrize("options", [[], ["without guard pages"]], ids=["guarded", "neighbours"])
def test_every_thread_has_its_own(options: list[str], aarch64: Aarch64, tmp_path: Path, start_job: StartJob) -> None:
    program = compiled(f"{PREFIX}gcc", tmp_path)
    job = start_job(aarch64.emulator, program, *options, environment=aarch64.environment)
    job.wait_for("ready")
    check(job, AARCH64)
