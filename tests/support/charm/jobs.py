"""Builds and starts programs under stock AMPI, in C, C++ and Fortran, and hears from them where their globals are.

Takes `CHARM_HOME` (the build directory that holds `bin/ampicc`) or ampicc on PATH. A job is up once every rank has told
and the rank that is not to wait in MPI_Recv is in sleep(): all others have then been switched away from.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pieglobalsfind.jobs.processes import pids
from tests.support.running import ROOT
from tests.support.waiting import wait_until

CHARM = os.environ.get("CHARM_HOME", "")
AMPICC = str(Path(CHARM, "bin", "ampicc")) if CHARM else shutil.which("ampicc") or ""
HOME = Path(AMPICC).resolve().parents[1] if AMPICC else Path()
HOOK = ROOT / "runtime-hooks" / "adapters" / "charm"
WORKERS = os.environ.get("CHARM_WORKERS", "").split()  # options of an SMP build's jobs, such as "+ppn 2"
RANKS = 4
BOTH = "pie-tls"  # both flags: plain variables are private by pie, those that are tagged by tls
COPIES = ("pie", BOTH)  # methods that copy the program: what holds of one must hold of the other
FLAGS = {
    BOTH: ["-pieglobals", "-tlsglobals"],
    # The linker must leave words of the global offset table that name variables, and AMPI takes absolute addresses.
    "swap": ["-swapglobals", "-fPIC", "-no-pie", "-Wl,--no-relax"],
    "none": [],
}
# A small thread-local variable would take AMPI's -pieglobals all privatization: test_unprivatized_variables.py.
TAGS = {BOTH: ["-include", "tag.h"], "tls": ["-DPRIVATE=__thread", "-fopenmp"]}
TAG = "#define PRIVATE __attribute__((aligned(8))) __thread\n"
BUILT = HOME / "include" / "conv-autoconfig.h"
IS_SMP = bool(AMPICC) and "define CMK_SUPPORTS_SWAPGLOBALS 0" in BUILT.read_text()  # as on every such build
METHODS = ("pie", BOTH, "pip", "fs", "tls", *(() if IS_SMP else ("swap",)), "none")
COMPILERS = {"c": "ampicc", "migrating.c": "ampicc", "gated.c": "ampicc", "cpp": "ampicxx", "f90": "ampif90"}
PATIENCE = 60  # seconds until a job must be up
CLOCK_NANOSLEEP, RESTART_SYSCALL, REALTIME = "230", "219", "0x0"  # system calls of x86-64, and sleep()'s clock

C_SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
PRIVATE int g_rank = -1;
int main(int count, char **words) {
  int here = 0, me;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  g_rank = me;
  printf("TRUTH %d %p %p %d\n", me, (void *)&g_rank, (void *)&here, getpid());
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  while (me == 0) sleep(300); /* signals of the runtime interrupt it */
  MPI_Recv(&here, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
MIGRATION_SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
PRIVATE int g_rank = -1;
int main(int count, char **words) {
  int here = 0, me;
  MPI_Info hints;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  g_rank = me;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "ampi_load_balance", "sync");
  for (int turn = 0; turn < 3; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    AMPI_Migrate(hints);
  }
  printf("TRUTH %d %p %p %d\n", me, (void *)&g_rank, (void *)&here, getpid());
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  while (me == 0) sleep(300); /* signals of the runtime interrupt it */
  MPI_Recv(&here, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
GATED_SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
PRIVATE int g_rank = -1;
int main(int count, char **words) {
  int me, go = 0, lost = 0;
  MPI_Info hints;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  g_rank = me;
  printf("TRUTH %d %p %p %d\n", me, (void *)&g_rank, (void *)&me, getpid());
  fflush(stdout);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "ampi_load_balance", "sync");
  while (!go) {
    if (me == 0) {
      usleep(1000);
      go = !access("go", F_OK);
    }
    MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (int turn = 0; turn < 3; turn++) {
    AMPI_Migrate(hints);
    lost |= g_rank != me;
    printf("TURN %d rank %d in %d has %d\n", turn, me, getpid(), g_rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return lost;
}
"""
FORTRAN_SOURCE = """
module state
  integer, save :: g_rank = -1
  !$omp threadprivate(g_rank)
end module
subroutine mpi_main
  use mpi
  use state
  use iso_c_binding
  implicit none
  integer :: ierr, here, me, status(MPI_STATUS_SIZE)
  interface
    integer(c_int) function c_sleep(seconds) bind(c, name="sleep")
      import c_int
      integer(c_int), value :: seconds
    end function
  end interface
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  g_rank = me
  write(*, '(A,I0,A,Z0,A,Z0)') 'TRUTH ', me, ' 0x', loc(g_rank), ' 0x', loc(here)
  flush(6)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  do while (me == 0)
    here = c_sleep(300)
  end do
  call MPI_Recv(here, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, status, ierr)
  call MPI_Finalize(ierr)
end subroutine
"""
SOURCES = {
    "c": C_SOURCE,
    "migrating.c": MIGRATION_SOURCE,
    "gated.c": GATED_SOURCE,
    "cpp": C_SOURCE,
    "f90": FORTRAN_SOURCE,
}


@dataclass(frozen=True)
class Truth:
    """Where a rank says that its global and a variable on its stack are."""

    global_address: str
    stack_address: str


@dataclass(frozen=True)
class Running:
    """A job of one process that stands still."""

    pid: int
    truth: dict[int, Truth]
    folder: Path


def build(
    folder: Path, method: str, language: str, with_hook: bool = False, source: str = "", more: Sequence[str] = ()
) -> None:
    """Compile the program into `folder`/prog; raises `AssertionError` with the compiler's words.

    `with_hook`: with the module of runtime-hooks/adapters/charm, which is put beside the program. `more`: options.
    """
    Path(folder, f"prog.{language}").write_text(source or SOURCES[language])
    environment = dict(os.environ)
    if with_hook:
        environment.update(hook_in(folder))
    Path(folder, "tag.h").write_text(TAG)
    options = flags_of(method)
    # Fortran's compiler takes no header, and has no thread-local variables without OpenMP, which -pieglobals drops.
    private = TAGS.get(method if method == "tls" or language != "f90" else "", ["-DPRIVATE="])
    compiler = str(Path(AMPICC).with_name(COMPILERS[language]))
    _run_in(folder, [compiler, "-g", *options, *more, *private, f"prog.{language}", "-o", "prog"], environment)


def flags_of(method: str) -> list[str]:
    """Return the options that AMPI's compilers get for a method."""
    return FLAGS.get(method, [f"-{method}globals"])


def hook_in(folder: Path) -> dict[str, str]:
    """Put the module of this source tree into a folder; the environment in which programs there are linked with it."""
    with (HOOK / "Makefile").open() as lock:  # one test at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run_in(folder, ["make", "-C", str(HOOK), f"CHARM_HOME={HOME}", f"LIB={folder}"], dict(os.environ))
    installed, own = (path / "libmodulerankdebug.a" for path in (HOME / "lib", folder))
    is_same = not installed.exists() or installed.read_bytes() == own.read_bytes()
    assert is_same, f"{installed}, which the linker takes first, is of another source tree: make charm-hook"
    return {"AMPI_BUILD_FLAGS": "-module rankdebug"}


def _run_in(folder: Path, command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, timeout=400, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


Launched = tuple[subprocess.Popen[str], dict[int, dict[int, str]]]
LOCALLY = ("++local",)


@contextmanager
def launched(
    folder: Path, ranks: int, *options: str, how: Sequence[str] = LOCALLY, processes: int = 2
) -> Iterator[Launched]:
    """The program of `folder` in several processes: charmrun, and where each rank of each process says its global is.

    `how`: charmrun's own options, which say how it starts processes.
    """
    command = ["./charmrun", f"+p{processes}", *how, "./prog", f"+vp{ranks}", *options]
    found: dict[int, dict[int, str]] = {}
    mark = f"RANKLENS_LAUNCH={uuid.uuid4().hex}"
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **dict([mark.split("=")])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            while sum(map(len, found.values())) < ranks:
                line = process.stdout.readline()
                assert line, "the job has ended"
                said = re.match(r"TRUTH (\d+) (0x\w+) 0x\w+ (\d+)", line)
                if said:
                    found.setdefault(int(said[3]), {})[int(said[1])] = said[2]
            yield process, found
        finally:
            process.kill()
            wait_until(lambda: not killed(mark), "processes of the launch do not end")


def killed(mark: str) -> list[int]:
    """The processes, now killed, that have been started with a variable: whoever their parents are, silent ones too."""
    found = []
    for pid in pids():
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
                found.append(pid)
    return found


def gated(folder: Path, ranks: int, *options: str) -> AbstractContextManager[Launched]:
    """The gated program, which the file `go` in its folder lets migrate."""
    Path(folder, "go").unlink(missing_ok=True)
    return launched(folder, ranks, "+balancer", "RotateLB", *options)


def turns_of(job: subprocess.Popen[str]) -> list[tuple[int, int, int]]:
    """The turn, the rank and its process, as the ranks of a gated job tell them until it ends, each as itself."""
    assert job.stdout is not None
    told = job.stdout.read()
    job.wait(timeout=60)
    found = re.findall(r"^TURN (\d) rank (\d) in (\d+) has (\d)$", told, re.MULTILINE)
    assert job.returncode == 0 and all(rank == value for _, rank, _, value in found), told
    return [(int(turn), int(rank), int(pid)) for turn, rank, pid, _ in found]


@contextmanager
def running(folder: Path, ranks: int = RANKS, options: Sequence[str] = ()) -> Iterator[Running]:
    """The program of `folder` with four ranks, or another number of them, ended afterwards."""
    with subprocess.Popen(
        ["./prog", f"+vp{ranks}", *WORKERS, *options], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            truth: dict[int, Truth] = {}
            assert process.stdout is not None
            while len(truth) < ranks:
                line = process.stdout.readline()
                assert line, "the program has ended"
                said = re.match(r"TRUTH (\d+) (0x\w+) (0x\w+)", line)
                if said:
                    truth[int(said[1])] = Truth(said[2].lower(), said[3].lower())
            wait_until_asleep(process.pid)
            yield Running(process.pid, truth, folder)
        finally:
            process.kill()


def wait_until_asleep(pid: int) -> None:
    """Until a thread of the process is in sleep(); the test fails if that never happens."""
    wait_until(
        lambda: any(_sleeps(path) for path in Path(f"/proc/{pid}/task").iterdir()),
        f"no thread of process {pid} came to sleep",
    )


def _sleeps(task: Path) -> bool:
    """Whether a kernel thread is in clock_nanosleep, or goes on in it after a pause, by restart_syscall (proc(5)).

    The latter has the arguments of what it goes on with: a clock, where poll and futex have addresses.
    """
    try:
        words = (task / "syscall").read_text().split()
    except OSError:  # it has ended
        return False
    return words[0] == CLOCK_NANOSLEEP or words[:2] == [RESTART_SYSCALL, REALTIME]
