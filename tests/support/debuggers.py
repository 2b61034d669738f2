"""Which debuggers the tests run: those that RANKLENS_GDB and RANKLENS_LLDB name, or else the system's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

GDB, LLDB = "RANKLENS_GDB", "RANKLENS_LLDB"
LLDBS = ("lldb-19", "lldb")  # Debian 12 calls its LLDB 14 `lldb`


def find_gdb() -> Path:
    """GDB's path; fails the test if there is none."""
    return _first(os.environ.get(GDB, "gdb"))


def gdb_version() -> tuple[int, int]:
    """GDB's major and minor version: (13, 1)."""
    said = subprocess.run([str(find_gdb()), "--version"], capture_output=True, text=True, check=True).stdout
    numbers = re.search(r"(\d+)\.(\d+)", said.splitlines()[0].rpartition(")")[2])
    assert numbers is not None, said
    return int(numbers[1]), int(numbers[2])


def lldb_version() -> int:
    """LLDB's major version."""
    said = subprocess.run([str(find_lldb()), "--version"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"version (\d+)", said)
    assert number is not None, said
    return int(number[1])


def holds_up_commands() -> bool:
    """Whether LLDB calls an extension back before its own commands; 18 does not, 19 does."""
    return lldb_version() >= 19


def find_lldb(program: str = "lldb") -> Path:
    """The path of LLDB, or of a program that belongs to it: `lldb-dap` of lldb-19 is lldb-dap-19."""
    chosen = os.environ.get(LLDB)
    return _first(*(str(Path(one).with_name(program + _suffix(one))) for one in ([chosen] if chosen else LLDBS)))


def find_dap() -> Path:
    """The path of lldb-dap; skips the test where LLDB is older than that."""
    if lldb_version() < 18:
        pytest.skip("LLDB has lldb-dap from 18 on")
    return find_lldb("lldb-dap")


def find_adapter() -> Path:
    """The path of LLDB's adapter for editors, which was lldb-vscode before LLDB 18."""
    if lldb_version() >= 18:
        return find_lldb("lldb-dap")
    return _first(f"lldb-vscode-{lldb_version()}", "lldb-vscode")


def _suffix(lldb: str) -> str:
    """What follows the word `lldb` in the name of a command, as -19."""
    return Path(lldb).name.removeprefix("lldb")


def _first(*names: str) -> Path:
    paths = [path for path in map(shutil.which, names) if path]
    if not paths:
        pytest.fail(f"{names[0]} is missing: run `make setup` and `.ci/setup test`")
    return Path(paths[0])
