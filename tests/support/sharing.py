"""What is made once in a test run, by whichever worker needs it first: programs, and what other MPIs make of them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Shared:
    """A folder that all workers of a test run have. What is in it is read, run and linked to, but never changed."""

    root: Path

    def made(self, name: str, make: Callable[[Path], object]) -> Path:
        """A folder that `make(folder)` fills for its first caller; all others fail as the first one did."""
        folder = self.root / name
        with (self.root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            failure = folder / "failure"
            if failure.exists():
                pytest.fail(failure.read_text(), pytrace=False)
            if not folder.exists():
                folder.mkdir()
                try:
                    make(folder)
                except BaseException as error:
                    failure.write_text(f"{type(error).__name__}: {error}")
                    raise
        return folder

    def compiled(self, command: Sequence[object], name: str) -> Path:
        """The program `name` that `command` builds, to which `-o` and the place are added.

        The same words with the same files in them give the same program; headers are those of the checkout.
        """
        words = [str(word) for word in command]
        digest = hashlib.sha256(repr([(word, Path(word).is_file() and content(word)) for word in words]).encode())

        def make(folder: Path) -> None:
            done = subprocess.run(
                [*words, "-o", str(folder / name)], cwd=folder, capture_output=True, text=True, timeout=120
            )
            if done.returncode:
                pytest.fail(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-4000:]}")

        return self.made(f"{name}.{digest.hexdigest()[:32]}", make) / name

    def copied(self, command: Sequence[object], place: Path) -> Path:
        """A copy of what `command` builds, which is the caller's own to change."""
        built = self.compiled(command, place.name)
        place.unlink(missing_ok=True)  # a process may still run what is there
        shutil.copy(built, place)
        return place


def content(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()
