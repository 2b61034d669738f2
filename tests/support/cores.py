"""Core files that the kernel writes of programs that die."""

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
