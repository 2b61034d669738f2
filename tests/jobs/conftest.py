"""Programs for jobs of several processes, built once for each test run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import BIN
from tests.sharing import Shared

from .sites import LOCAL, Site, only_where_possible, spaces

MPICH = "mpicc.mpich"
STEPS = 400  # of steps.c
PROGRAMS = Path(__file__).resolve().parent / "programs"

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path, shared: Shared) -> Build:
    """Build a program of this folder for the embedded runtime."""

    def make(name: str, *options: str, compiler: str = str(BIN / "rankcc")) -> Path:
        program = tmp_path / f"{Path(name).stem}-{Path(compiler).name}"
        return shared.copied([compiler, "-g", "-O1", *options, PROGRAMS / name], program)

    return make


def run(*words: object, before: Sequence[str] = (), given: str = "") -> subprocess.CompletedProcess[str]:
    """rankrun, to its end, with words before it; `given`: its standard input."""
    command = [*before, str(BIN / "rankrun"), *(str(one) for one in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, input=given)


def run_on(site: Site, shell: Path, *words: object, given: str = "") -> subprocess.CompletedProcess[str]:
    """rankrun on the hosts of a site, to its end."""
    return run(*site.options(shell), *words, before=site.home, given=given)


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
