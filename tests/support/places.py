"""Jobs whose ranks print where their things are, and the command that is asked about them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from tests.support.cores import core_of
from tests.support.running import ROOT, Job

SOURCES = ROOT / "tests" / "pieglobalsfind" / "cli" / "sources"


@dataclass(frozen=True)
class Place:
    """What a rank printed: `address` lies `offset` bytes into `name` (-1: somewhere in it; name "-": it has none)."""

    rank: int
    kind: str
    name: str
    offset: int
    address: int


@dataclass(frozen=True)
class Places:
    """A job that stands still, its program's file, and what its ranks printed."""

    job: Job
    program: Path
    places: tuple[Place, ...]

    @property
    def addresses(self) -> list[str]:
        return [f"{place.address:#x}" for place in self.places]

    def place(self, name: str, rank: int) -> Place:
        return next(place for place in self.places if place.name == name and place.rank == rank)


def parse(line: str) -> Place:
    _, rank, kind, rest = line.split(" ", 3)
    name, offset, address = rest.rsplit(" ", 2)
    return Place(int(rank), kind, name, int(offset), int(address, 16))


StartPlaces = Callable[..., Places]


@dataclass(frozen=True)
class Command:
    """The installed command."""

    path: Path

    def run(self, *words: object, text: Optional[bytes] = None) -> subprocess.CompletedProcess[bytes]:
        """Its result; whatever it is asked, it never shows a traceback."""
        done = subprocess.run(
            [self.path, *(str(word) for word in words)],
            input=text, stdin=subprocess.DEVNULL if text is None else None, capture_output=True, timeout=120,
        )  # fmt: skip
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done

    def records(self, *words: object) -> list[dict[str, Any]]:
        """The JSON objects, one of each line."""
        done = self.run("--json", *words)
        assert done.returncode == 0, done.stderr.decode()
        return [json.loads(line) for line in done.stdout.splitlines()]


def gcore(job: Job, folder: Path) -> Path:
    """A core file of a running job."""
    return core_of(job.pid, folder)
