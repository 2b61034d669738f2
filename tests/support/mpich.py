"""How this system starts a program that its mpicc.mpich has built, as a job of several processes.

Ubuntu 24.04 has built MPICH for a PMIx server, which MPICH's own mpiexec is not: below that one every process is rank
0 of 1. Open MPI's mpirun is such a server, and starts MPICH's programs there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

LIBRARY = "*/libmpich.so.12"
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK")
MPIRUN = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")


@cache
def needs_pmix() -> bool:
    """Whether MPICH's library does not know what its own mpiexec gives to processes."""
    return all(b"PMI_FD" not in path.read_bytes() for path in Path("/usr/lib").glob(LIBRARY))


def mpiexec() -> list[str]:
    """The launcher's words, which `-n` and a program follow."""
    return list(MPIRUN) if needs_pmix() else ["mpiexec.mpich"]


def printed_by_ranks(ranks: int, program: Path, folder: Path) -> tuple[list[str], list[Path]]:
    """A job's command, and the files of what each rank prints: launchers cut lines of one where their reads end."""
    if needs_pmix():
        files = [folder / "1" / f"rank.{rank}" / "stdout" for rank in range(ranks)]
        return [*mpiexec(), "--output-filename", str(folder), "-n", str(ranks), str(program)], files
    files = [folder / f"out.{rank}" for rank in range(ranks)]
    return [*mpiexec(), "-outfile-pattern", str(folder / "out.%r"), "-n", str(ranks), str(program)], files


def rank_in(environment: Mapping[str, str]) -> int:
    """The rank of a process of such a job."""
    return int(next(environment[name] for name in RANK_VARIABLES if name in environment))
