"""Samples of SMPI's ranks while they exchange messages: later looks read again what changes, and find nothing anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.session.sampler import Sampler
from pieglobalsfind.targets.live import LiveTarget
from tests.inspector.job.test_sampling import check
from tests.support.busy import SOURCE
from tests.support.running import StartJob
from tests.support.smpi.jobs import command, needs_smpi, process_of
from tests.support.waiting import wait_until

pytestmark = needs_smpi
RANKS, LOOKS = 6, 30


@pytest.mark.parametrize("factory", ["raw", "thread"])
def test_every_rank_at_every_look(factory: str, start_job: StartJob, tmp_path: Path) -> None:
    source, program = tmp_path / "busy.c", tmp_path / "busy"
    source.write_text(SOURCE)
    subprocess.run(["smpicc", "-g", "-O1", str(source), "-o", str(program)], check=True, timeout=120)
    words = command(tmp_path, RANKS, program, f"--cfg=contexts/factory:{factory}")
    job = start_job(*words, "exchange", 1 << 40)
    job.wait_for("begins")
    sampler = Sampler(LiveTarget(wait_until(lambda: process_of(job), "smpirun has started no smpimain")))
    check(sampler.look(), RANKS, "exchange", switching=1)
    again = 0
    for _ in range(LOOKS):
        sample = sampler.look_again()
        if sample is None:  # it is time to find the ranks anew
            sample = sampler.look()
        else:
            again += 1
        check(sample, RANKS, "exchange", switching=1)
    assert again > 0, "no look has used what was known"
