"""Core files: those that the kernel writes of programs that die, and those that GDB writes of programs that live."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import pytest


def run_to_core(
    folder: Path, *command: object, env: Optional[Mapping[str, str]] = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, where the kernel writes its core file; skips where it writes them elsewhere."""
    if Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("the kernel writes core files elsewhere")
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2),
    )


def core_of(pid: int, folder: Path) -> Path:
    """The file core.PID as `gcore` writes it: the same bytes in half the time, because GDB reads no symbols."""
    core = folder / f"core.{pid}"
    settings = ("set debuginfod enabled off", "set auto-load off", "set auto-solib-add off")
    words = [word for setting in settings for word in ("-iex", setting)]
    subprocess.run(
        ["gdb", "-nx", "-batch", "-readnever", *words, "-p", str(pid), "-ex", f"gcore {core}", "-ex", "detach"],
        check=True, timeout=240, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert core.exists(), f"GDB wrote no core file of process {pid}"
    return core
