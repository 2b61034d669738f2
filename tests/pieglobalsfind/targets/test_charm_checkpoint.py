"""A checkpoint of Charm++ is refused as what it is, by its folder and by each of its files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.running import BIN

FILES = ("RO.dat", "MainChares.dat", "sub0/Groups_0.dat", "sub0/arr_0.dat")  # as Charm++ 8.0.1 wrote them
COMMANDS = (
    (["inspector", "report"], "folder"),
    (["inspector", "stacks"], "folder"),
    (["inspector", "ranks"], "folder"),
    (["inspector", "pointers"], "folder"),
    (["inspector", "payload"], "folder"),
    (["inspector", "ranks"], "sub0/arr_0.dat"),
    (["inspector", "globals"], "RO.dat"),
    (["pieglobalsfind", "0x1234", "--core"], "sub0/Groups_0.dat"),
    (["pieglobalsfind", "0x1234", "--checkpoint"], "folder"),
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\1\0\0\0\1\0\0\0packed")
    return folder


def run(words: list[str], path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / words[0]), *words[1:], str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=os.sep)


@pytest.mark.parametrize(("words", "what"), COMMANDS)
def test_it_is_refused(checkpoint: Path, words: list[str], what: str) -> None:
    done = run(words, checkpoint if what == "folder" else checkpoint / what)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{checkpoint} is a checkpoint of Charm++ (AMPI), which only Charm++ can read: " in done.stderr
    assert f"`+restart {checkpoint}`" in done.stderr


def test_another_file_is_not_taken_for_one(checkpoint: Path) -> None:
    (checkpoint / "MainChares.dat").unlink()
    assert "RO.dat is not an ELF file" in run(["inspector", "ranks"], checkpoint / "RO.dat").stderr
    assert "holds no whole checkpoint" in run(["inspector", "report"], checkpoint).stderr
