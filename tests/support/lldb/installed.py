"""The program that says where its variables are, jobs and core files of it, and an LLDB to ask about them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


def find_lldb(name: str = "lldb") -> Path:
    path = shutil.which(f"{name}-19") or shutil.which(name)
    if path is None:
        pytest.fail(f"{name} is missing: run `make setup`")
    return Path(path)
