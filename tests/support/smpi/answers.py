"""What our commands say of a real SMPI job, of any kind of target, in forms that tests compare.

Takes a pid, a core file or a snapshot; gives the commands' JSON. Never judges.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Union

from tests.support.gdb.places import make_core
from tests.support.running import built
from tests.support.smpi.jobs import Running, kernel_core

PATIENCE = 120  # seconds


def asked(*words: object, statuses: Collection[int] = (0,)) -> Any:
    """The JSON answer of an inspector's command, which ends with one of `statuses`."""
    command = [str(built("inspector")), *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in statuses, done.stdout + done.stderr
    return json.loads(done.stdout)


def owners(target: Union[int, Path], *addresses: int) -> list[str]:
    """What pieglobalsfind says of addresses, a line each."""
    which = ["--pid", str(target)] if isinstance(target, int) else ["--core", str(target)]
    words = [str(built("pieglobalsfind")), *which, *map(hex, addresses)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def ranks_of(text: str) -> list[int]:
    """The ranks that a set such as "0-2,5" names."""
    parts = [part.partition("-") for part in text.split(",")]
    return [rank for first, _, last in parts for rank in range(int(first), int(last or first) + 1)]


def values_in(found: Any) -> dict[str, dict[int, str]]:
    """By variable and rank, what a report or `globals` says."""
    return {
        one["name"]: {rank: group["value"] for group in one["groups"] for rank in ranks_of(group["ranks"])}
        for one in found["globals"]
    }


def snapshot(running: Running, folder: Path) -> Path:
    """A snapshot of the job, which goes on."""
    words = [str(built("inspector")), "snapshot", str(running.pid), "-o", str(folder / "snapshot")]
    subprocess.run(words, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
    return folder / "snapshot"


# What of a job can be looked at: a core file by the kernel ends it.
TARGETS: Mapping[str, Callable[[Running, Path], Union[int, Path]]] = {
    "live": lambda running, folder: running.pid,
    "snapshot": snapshot,
    "gcore": lambda running, folder: make_core(running.pid, folder),
    "kernel": lambda running, folder: kernel_core(running.pid, folder),
}
