"""Which MPI library mpi4py loads: that of the launcher which has started this process.

Takes the environment that the launcher has made; chooses before mpi4py is imported. mpi4py's wheels look for names that
MPICH's and Open MPI's own builds give. Debian's MPICH has another name: this makes a link, and starts this process
again with the link's folder on LD_LIBRARY_PATH, which the loader reads only once.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Optional

from pieglobalsfind.cache.path import cache_folder

LISTING = ("/sbin/ldconfig", "-p")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
AGAIN = "RANKLENS_MPI_LINK"  # in the environment of the second start


@dataclass(frozen=True)
class SiteMpi:
    """An MPI: mpi4py's word for it, the library's usual name, Debian's, and the package that has it there."""

    abi: str
    library: str
    debian: str
    package: str


MPICH = SiteMpi("mpich", "libmpi.so.12", "libmpich.so.12", "libmpich12")
OPEN_MPI = SiteMpi("openmpi", "libmpi.so.40", "libmpi.so.40", "libopenmpi3")


def of_launch(environment: Mapping[str, str]) -> SiteMpi:
    """The MPI whose launcher has made this environment: Open MPI's has its own names, and srun's pmix no PMI_RANK."""
    is_open = "OMPI_COMM_WORLD_RANK" in environment or ("PMIX_RANK" in environment and "PMI_RANK" not in environment)
    return OPEN_MPI if is_open else MPICH


def choose(site: SiteMpi, channel: int, program: str) -> None:
    """Have mpi4py load the site's library; starts this process again, as `program`, where only another name is there.

    `channel` is the open file that the second start is given. Raises `ImportError` without mpi4py.
    """
    if util.find_spec("mpi4py") is None:
        raise ImportError("there is no mpi4py")
    os.environ.setdefault("MPI4PY_MPIABI", site.abi)
    if site.library == site.debian or AGAIN in os.environ or can_load(site.library):
        return
    folder = folder_of_link(site)
    if folder is None:
        return
    places = ":".join(path for path in (str(folder), os.environ.get("LD_LIBRARY_PATH", "")) if path)
    os.set_inheritable(channel, True)
    words = [sys.executable, "-c", program, str(channel)]
    os.execve(sys.executable, words, {**os.environ, "LD_LIBRARY_PATH": places, AGAIN: str(folder)})


def can_load(library: str) -> bool:
    """Whether the loader finds a library of this name; nothing of it runs that a later MPI_Init would not run."""
    with suppress(OSError):
        ctypes.CDLL(library, mode=os.RTLD_LAZY)
        return True
    return False


def folder_of_link(site: SiteMpi) -> Optional[Path]:
    """Where the library is by its usual name: a link of this user's, made at the first time; None if there is none."""
    base = cache_folder("mpi")
    if base is None:
        return None
    folder = Path(base, site.abi)
    if not (folder / site.library).exists():
        path = path_of(site.debian)
        if path is None:
            return None
        link(path, folder, site.library)
    return folder


def path_of(library: str) -> Optional[str]:
    """Where the loader's cache says that a library is (ldconfig(8)); None if it does not."""
    import subprocess  # late: only for the first collector that this user starts

    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(LISTING, capture_output=True, text=True, timeout=10, check=True).stdout
        return next((line.rpartition(" ")[2] for line in listed.splitlines() if line.split()[:1] == [library]), None)
    return None


def link(path: str, folder: Path, name: str) -> None:
    """Make a link of that name to a library; others may do so at the same moment."""
    fresh = folder / os.urandom(8).hex()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh.symlink_to(path)
    fresh.replace(folder / name)


def processes_of_launch(environment: Mapping[str, str]) -> int:
    """How many processes the launcher has started, 0 if it does not say."""
    return next((int(environment[name]) for name in SIZES if environment.get(name, "").isdecimal()), 0)


def why_not(site: SiteMpi, error: ImportError) -> tuple[str, str]:
    """What a collector lacks, and what to install."""
    if util.find_spec("mpi4py") is None:
        return "mpi4py", "pip install 'ranklens[mpi]', or Debian's python3-mpi4py"
    names = " or ".join(dict.fromkeys((site.library, site.debian)))
    hint = f"install the launcher's own MPI (Debian: {site.package}), or put its folder on LD_LIBRARY_PATH"
    return f"the launcher's MPI library, {names}, which the loader does not find: {error}", hint
