"""One process that holds known bytes, and every way there is to look at it."""

from __future__ import annotations

import resource
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.target import Target
from tests.support.running import ROOT
from tests.support.waiting import wait_until

SOURCE = ROOT / "tests" / "pieglobalsfind" / "targets" / "held.c"
READY = ("first", "second")


@dataclass(frozen=True)
class Held:
    """The process, its program, and the addresses that it printed."""

    process: subprocess.Popen[str]
    program: Path
    places: dict[str, int]

    @property
    def pid(self) -> int:
        return self.process.pid


def build(folder: Path, *options: str) -> Path:
    program = folder / "held"
    command = ["gcc", "-g", "-Wall", "-Werror", "-o", str(program), str(SOURCE), "-pthread", *options]
    subprocess.run(command, check=True, timeout=120)
    return program


def allow_core_files() -> None:
    """In a new process: as large as its account may have them."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def start(program: Path, folder: Path, command: Optional[list[str]] = None) -> Held:
    """Start the program and read the addresses; both of its threads wait in pause() then, or will at once."""
    process = subprocess.Popen(
        command or [str(program)],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=allow_core_files,
    )
    assert process.stdout is not None
    places: dict[str, int] = {}
    while not all(name in places for name in READY):
        name, _, address = process.stdout.readline().partition(" ")
        places[name] = int(address, 16)
    wait_until_blocked(process.pid)
    return Held(process, program, places)


def wait_until_blocked(pid: int) -> None:
    """Until every thread is in a system call: a thread prints before it waits."""
    calls = [task / "syscall" for task in Path(f"/proc/{pid}/task").iterdir()]
    wait_until(
        lambda: not any(call.read_text().startswith("running") for call in calls),
        f"a thread of process {pid} never waits",
    )


def end(held: Held) -> None:
    held.process.kill()
    held.process.wait()
    if held.process.stdout is not None:
        held.process.stdout.close()


def gcore(held: Held, folder: Path) -> Path:
    """A core file by GDB."""
    subprocess.run(
        ["gcore", "-o", str(folder / "core.gdb"), str(held.pid)],
        check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return folder / f"core.gdb.{held.pid}"


def kernel_core(held: Held, folder: Path) -> Path:
    """A core file by the kernel, where it writes them into the working directory."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern != "core":
        pytest.skip(f"this machine's core files go to {pattern!r}")
    held.process.send_signal(signal.SIGSEGV)
    held.process.wait(60)
    paths = [path for path in (folder / "core", folder / f"core.{held.pid}") if path.exists()]
    if not paths:
        pytest.skip("this machine writes no core files")
    return paths[0]


BACKENDS = ("live", "gcore", "kernel core")


@dataclass(frozen=True)
class Seen:
    """A target, and the process that it shows."""

    target: Target
    held: Held
