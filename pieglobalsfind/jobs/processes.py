"""The processes of this host, as /proc tells them: which one started which, the program of each, and by which launch.

Takes nothing; gives values of one moment. It reads no memory of theirs, and knows nothing of ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LARGEST_ENVIRONMENT = 1 << 20  # bytes that are read of one
LONGEST_MARK = 256
NETSTART = "NETSTART"  # charmrun: "process address port pid port", where `pid` is charmrun's own, modulo 2^15
NAMESPACE = "PMIX_NAMESPACE"  # Open MPI, PRRTE, srun --mpi=pmix: the launch's name
STEP = ("SLURM_JOB_ID", "SLURM_STEP_ID")  # several launches may share one
VARIABLES = (NETSTART, NAMESPACE, *STEP)
PROXY = "hydra_pmi_proxy"  # of MPICH's mpiexec, on each host
LISTENS = "0A"  # state of a socket in /proc/PID/net/tcp


@dataclass(frozen=True)
class HostProcess:
    """A process; `program` is its file, `marks` what launchers put into the environment of all that they launch.

    `launch` is the mark that names one launch, "" if the environment has none; of a `PROXY`, where its mpiexec listens.
    """

    pid: int
    parent: int
    program: str
    launch: str
    marks: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the program's name."""
        return Path(self.program).name

    @property
    def step(self) -> tuple[str, str]:
        """Slurm's numbers of its job and of the step in it, "" outside Slurm."""
        return self.marks[-2], self.marks[-1]


def processes() -> dict[int, HostProcess]:
    """All of them by pid; of those that may not be read, program and marks are empty."""
    return {pid: _process(pid) for pid in pids()}


def _process(pid: int) -> HostProcess:
    variables = environment(pid)
    # The first number is the process's own.
    launch = variables.get(NETSTART, "").partition(" ")[2] or variables.get(NAMESPACE, "")
    file = program(pid)
    if Path(file).name == PROXY:
        launch = control_port(pid)
    return HostProcess(pid, parent(pid), file, launch, (launch, *(variables.get(step, "") for step in STEP)))


def pids() -> Iterator[int]:
    """Yield the pids of this host."""
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            yield int(path.name)


def program(pid: int) -> str:
    """The file that it runs; "" if that may not be read."""
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def control_port(pid: int) -> str:
    """Where the mpiexec that has started a `PROXY` listens, "host:port"; "" if its words don't say so."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(LARGEST_ENVIRONMENT).decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    port = next((value for option, value in zip(words, words[1:]) if option == "--control-port"), "")
    return port[:LONGEST_MARK] if port.isprintable() else ""


def parent(pid: int) -> int:
    """0 if it has none that can be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def name_of(pid: int) -> str:
    """What it is called in lists of processes, which everybody may read; "" if it has ended."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""


def user_of(pid: int) -> int:
    """The real user's number, -1 if the process has ended; the owner of /proc/PID may be another (proc(5))."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(b"Uid:")), -1)
    except OSError:
        return -1


def environment(pid: int) -> dict[str, str]:
    """What the process was started with of `VARIABLES`, as getenv() would find it; {} if it may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = file.read(LARGEST_ENVIRONMENT)
    except OSError:
        return {}
    marks: dict[str, str] = {}
    for word in data.split(b"\0"):
        name, _, value = word[: LONGEST_MARK + 32].partition(b"=")
        text = value.decode("utf-8", "replace")
        if name.decode("ascii", "replace") in VARIABLES:
            marks.setdefault(name.decode(), text[:LONGEST_MARK])
    return {name: text for name, text in marks.items() if text.isprintable()}


def descendants(pid: int, by_pid: Mapping[int, HostProcess]) -> Iterator[int]:
    """Below a process, nearest first."""
    children: dict[int, list[int]] = defaultdict(list)
    for process in by_pid.values():
        children[process.parent].append(process.pid)
    seen, waiting = {pid}, sorted(children.get(pid, ()))
    while waiting:
        descendant = waiting.pop(0)
        if descendant not in seen:  # /proc was read while processes came and went
            seen.add(descendant)
            yield descendant
            waiting += sorted(children.get(descendant, ()))


def ancestors(pid: int, by_pid: Mapping[int, HostProcess]) -> Iterator[int]:
    """Above a process, nearest first, without the first process of all."""
    seen = {pid}
    while pid in by_pid and by_pid[pid].parent > 1 and by_pid[pid].parent not in seen:
        pid = by_pid[pid].parent
        if pid in by_pid:
            seen.add(pid)
            yield pid


def listens(pid: int, port: int) -> bool:
    """Whether a process waits for connections at a TCP port."""
    try:
        held = set(_open_files(pid))
        rows = [line.split() for name in ("tcp", "tcp6") for line in _lines(f"/proc/{pid}/net/{name}")]
    except OSError:
        return False
    return any(_waits_at(row, port) and f"socket:[{row[9]}]" in held for row in rows)


def _open_files(pid: int) -> Iterator[str]:
    """What a process has open, by the kernel's names; files that it closes meanwhile are left out."""
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(path.readlink())


def _lines(path: str) -> Iterable[str]:
    with open(path) as file:
        return file.read().splitlines()[1:]


def _waits_at(row: list[str], port: int) -> bool:
    return len(row) > 9 and row[3] == LISTENS and row[1].endswith(f":{port:04X}")
