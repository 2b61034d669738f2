"""The highest priority is had where the kernel permits it, and no longer than asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NOBODY = 65534
PROGRAM = """
import os, sys
os.nice(3)
if sys.argv[1:]:
    os.setuid(int(sys.argv[1]))
from pieglobalsfind.targets.ptrace import highest
with highest() as is_highest:
    print(is_highest, os.getpriority(os.PRIO_PROCESS, 0))
print(os.getpriority(os.PRIO_PROCESS, 0))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("user", [0, NOBODY])
def test_priority_inside_and_afterwards(user: int) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0) + 3
    program = f"import sys; sys.path[:] = {sys.path!r}; import pieglobalsfind.targets.ptrace\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program, str(user)], capture_output=True, text=True, check=True)
    inside = "True -20" if user == 0 else f"False {min(before, 19)}"
    assert done.stdout.splitlines() == [inside, str(min(before, 19))]
