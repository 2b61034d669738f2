"""Two MPI jobs in one process of SMPI: their ranks get numbers one after another."""

from __future__ import annotations

from pathlib import Path

from pieglobalsfind.decoders import decode
from pieglobalsfind.model import Region
from pieglobalsfind.targets import open_target
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.answers import asked
from tests.support.smpi.jobs import HOME, SOURCES, needs_smpi, platform, sleeps
from tests.support.waiting import wait_until

pytestmark = needs_smpi
SMPI_HEADERS = HOME / "include" / "smpi"
DEPLOYMENT = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
{actors}
</platform>
"""
ACTOR = """<actor host="node{host}" function="{job}">
  <prop id="instance_id" value="{job}"/><prop id="rank" value="{rank}"/>
</actor>"""
TWO_JOBS = (("alpha", 0), ("alpha", 1), ("beta", 0), ("beta", 1), ("beta", 2))


def test_two_jobs_in_one_process(start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Their ranks are numbered on, also as peers; a rank of the second one waits for itself."""
    options = ["-g", "-O0", "-std=c++17", f"-I{SMPI_HEADERS}"]
    program = shared.compiled(["g++", *options, SOURCES / "instances.cpp", "-lsimgrid"], "instances")
    description, _ = platform(tmp_path, len(TWO_JOBS))
    deployment = tmp_path / "deployment.xml"
    actors = (ACTOR.format(host=host, job=job, rank=rank) for host, (job, rank) in enumerate(TWO_JOBS))
    deployment.write_text(DEPLOYMENT.format(actors="\n".join(actors)))
    job = start_job(program, description, deployment, "--log=root.thres:error")
    job.wait_for("ready")
    wait_until(lambda: sleeps(job.pid), "the first rank never came to sleep")
    table = decode(open_target(pid=job.pid))
    assert [rank.rank for rank in table.ranks] == list(range(len(TWO_JOBS)))
    assert len(table.warnings) == 1 and "alpha has 0-1, beta has 2-4" in table.warnings[0]
    told = {tuple(line.split()[1:3]): int(line.split()[3], 16) for line in job.lines if line.startswith("TRUTH ")}
    for rank, (name, number) in zip(table.ranks, TWO_JOBS):
        assert isinstance(rank.stack, Region) and told[str(number), name] in rank.stack
    found = asked("waits", job.pid)
    assert {one["rank"]: one["for"] for one in found["waits"]} == {1: 0, 2: 2, 3: 2, 4: 2}
    assert found["cycles"] == [[2]]
