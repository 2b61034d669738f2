"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_programs import MPICH, PROGRAMS, STEPS, Build
from tests.support.running import BIN
from tests.support.sharing import Shared
from tests.support.sites import LOCAL, Site, only_where_possible, spaces


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


@pytest.fixture
def addresses() -> Site:
    return Site(LOCAL)


@pytest.fixture(params=["addresses", "namespaces"])
def site(request: pytest.FixtureRequest) -> Site:
    found: Site = request.getfixturevalue(request.param)
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
