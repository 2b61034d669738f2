"""Collectors on AMPI jobs of two hosts, under each launcher that sites have (tests/support/site_launchers.py).

Of charmrun's builds the processes are started by `charmrun ++mpiexec` with the launcher, of builds on MPI (machine
layer `mpi`) by the launcher itself: `srun ./program`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pieglobalsfind.jobs.processes import pids
from pieglobalsfind.jobs.processes import program as program_of
from tests.jobs.conftest import launcher, namespaces, slurm_environment  # noqa: F401
from tests.jobs.test_collectors import report_in
from tests.jobs.test_launchers import collect
from tests.support.charm.jobs import AMPICC, COPIES, HOME, build
from tests.support.site_launchers import SiteLauncher
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 6
IS_ON_MPI = HOME.name.startswith("mpi-")
HOME_ADDRESS = "10.99.0.1"  # of the user, on the hosts' network


@pytest.fixture(
    scope="module", params=[(method, with_hook) for method in COPIES for with_hook in (False, True)], ids=str
)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program is, with and without the hook module."""
    made = tmp_path_factory.mktemp("ampi")
    method, with_hook = request.param
    build(made, method, "c", with_hook=with_hook)
    return made


def command_of(site: SiteLauncher, folder: Path) -> list[str]:
    """How a user starts the program on the launcher's hosts."""
    program = ("./prog", f"+vp{RANKS}")
    if IS_ON_MPI:
        libraries = subprocess.run(["ldd", folder / "prog"], capture_output=True, text=True, check=True).stdout
        if ("libmpich" in libraries) != (site.compiler == "mpicc.mpich"):
            pytest.skip(f"this Charm++ is built with another MPI than {site.name} has")
        return site.command(*program)
    words = [word for word in site.words if word not in ("--mpi=pmi2", "--mpi=pmix")]  # the program calls no MPI
    home = []
    if words[0] == "nsenter":
        home, words = words[: words.index("--") + 1], words[words.index("--") + 1 :]
    wrapper = folder / f"start-{site.name}"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
    wrapper.chmod(0o755)
    address = ["++useip", HOME_ADDRESS] if home else []
    return [*home, "./charmrun", "+p2", "++mpiexec-no-n", "++remote-shell", str(wrapper), *address, *program]


@contextmanager
def running(site: SiteLauncher, folder: Path) -> Iterator[list[int]]:
    """The job, once each rank has said where it is; gives its processes."""
    with subprocess.Popen(
        command_of(site, folder),
        cwd=folder,
        env=site.full_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = 0
            while said < RANKS:
                line = process.stdout.readline()
                assert line, "the job has ended"
                said += line.count("TRUTH")
            yield own(folder)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            wait_until(lambda: not end_all(folder), "processes of the job do not end")


def own(folder: Path) -> list[int]:
    return [pid for pid in pids() if program_of(pid) == str(folder / "prog")]


def end_all(folder: Path) -> list[int]:
    left = own(folder)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def test_collectors_answer_for_ranks_of_all_hosts(launcher: SiteLauncher, folder: Path) -> None:  # noqa: F811
    with running(launcher, folder) as processes:
        assert len(processes) == 2
        found = report_in(collect(launcher, processes[0], "stacks", "--json", "--mpi"))
        functions = {stack["ranks"]: {call["function"] for call in stack["calls"]} for stack in found["stacks"]}
        assert functions.keys() == {"0", f"1-{RANKS - 1}"} and not found["missing"], functions
        receive = "AMPI_Recv" if IS_ON_MPI else "MPI_Recv"  # the other name is the site's MPI's there
        assert "__sleep" in functions["0"] and receive in functions[f"1-{RANKS - 1}"]

        found = report_in(collect(launcher, processes[0], "waits", "--json", "--mpi"))
        # Of AMPI on MPI the compiler has inlined AMPI_Recv, so that its arguments are not known; `waits` prints that.
        expected = [] if IS_ON_MPI else [{"rank": rank, "for": 0} for rank in range(1, RANKS)]
        assert found["waits"] == expected

        job = found["target"].partition(" ")[2]
        found = report_in(collect(launcher, processes[0], "report", "--json", "--mpi", "--job", job))
        assert [one["rank"] for one in found["ranks"]] == list(range(RANKS)) and found["warnings"] == []
        (own_rank,) = (one for one in found["globals"] if one["name"] == "g_rank")
        assert own_rank["groups"] == [{"ranks": str(rank), "value": str(rank)} for rank in range(RANKS)]


def test_events_of_ranks_of_all_hosts(launcher: SiteLauncher, folder: Path) -> None:  # noqa: F811
    """Of programs with the hook module; others keep none."""
    if not (folder / "librankdebug.a").exists() and not (folder / "libmodulerankdebug.a").exists():
        pytest.skip("stock AMPI keeps no events")
    with running(launcher, folder) as processes:
        lines = collect(launcher, processes[0], "events", "--mpi", "--no-follow", "--json").splitlines()
        first, *events = (json.loads(line) for line in lines if line.startswith("{"))
        assert [one["process"] for one in first["processes"]] == [0, 1]
        assert sorted(one["rank"] for one in events if one["event"] == "created") == list(range(RANKS))
