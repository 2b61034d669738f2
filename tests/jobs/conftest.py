"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.job_programs import MPICH, PROGRAMS, STEPS, Build
from tests.support.running import BIN
from tests.support.sharing import Shared
from tests.support.site_launchers import SiteLauncher, hydra, lacking_slurm, open_mpi, slurm, srun
from tests.support.sites import Site, only_where_possible, spaces


@pytest.fixture
def build(tmp_path: Path, shared: Shared) -> Build:
    """Build a program of this folder for the embedded runtime."""

    def make(name: str, *options: str, compiler: str = str(BIN / "rankcc")) -> Path:
        program = tmp_path / f"{Path(name).stem}-{Path(compiler).name}"
        return shared.copied([compiler, "-g", "-O1", *options, PROGRAMS / name], program)

    return make


@pytest.fixture(scope="session")
def namespaces() -> Iterator[Site]:
    only_where_possible()
    with spaces() as site:
        yield site


@pytest.fixture(scope="session")
def slurm_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """How commands find a Slurm that runs until the tests are over."""
    reason = lacking_slurm()
    if reason is not None:
        pytest.skip(reason)
    with slurm(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture(params=["mpich", "openmpi", "pmi2", "pmix"])
def launcher(request: pytest.FixtureRequest, tmp_path: Path) -> SiteLauncher:
    """Each of the launchers that sites have, with a transport for it."""
    if request.param in ("pmi2", "pmix"):
        found = srun(request.getfixturevalue("slurm_environment"), request.param)
    else:
        site: Site = request.getfixturevalue("namespaces")
        found = (hydra if request.param == "mpich" else open_mpi)(site, site.shell(tmp_path))
    for tool in (found.compiler, *found.tools):
        if shutil.which(tool) is None:
            pytest.skip(f"this machine has no {tool} (make test-launchers installs it)")
    subprocess.run([BIN / "rankcc", "--with-mpi", found.compiler], check=True, timeout=300)
    return found


@pytest.fixture
def wandered(build: Build, shared: Shared) -> list[str]:
    """What six ranks of wander.c print where they stay."""

    def make(folder: Path) -> None:
        program = build("wander.c", "-DSTAY", compiler=MPICH)
        command = ["mpiexec.mpich", "-outfile-pattern", str(folder / "out.%r"), "-n", "6", str(program)]
        subprocess.run(command, check=True, timeout=120)

    files = shared.made("wander under MPICH", make).glob("out.*")
    lines = sorted(line for file in files for line in file.read_text().splitlines())
    assert len(lines) == 36 and all(": 0 wrong" in line for line in lines)
    return lines


@pytest.fixture
def stepped(build: Build, shared: Shared) -> list[str]:
    """What four ranks of steps.c print at their end."""

    def make(folder: Path) -> None:
        command = ["mpiexec.mpich", "-n", "4", str(build("steps.c", compiler=MPICH)), str(STEPS)]
        with (folder / "lines").open("w") as lines:
            subprocess.run(command, stdout=lines, timeout=120, check=True)

    printed = (shared.made("steps under MPICH", make) / "lines").read_text()
    return sorted(line for line in printed.splitlines() if line.startswith("rank "))
