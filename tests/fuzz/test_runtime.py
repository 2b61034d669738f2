"""Damage that libFuzzer found the runtime to accept; `make fuzz` finds new ones (docs/development.md)."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.fuzz.runtime import HERE
from tests.support.running import built

PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
PT_LOAD = 1


@pytest.mark.parametrize(("offset", "size"), [((1 << 64) - 4096, 8192), (4096, (1 << 64) - 1), (1 << 63, 1)])
def test_a_segment_that_no_file_has(offset: int, size: int, tmp_path: Path) -> None:
    """Its end, as a number of 64 bits, is small or negative: it has to be refused all the same."""
    header = bytearray(
        b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    )
    program = tmp_path / "program"
    program.write_bytes(bytes(header) + PROGRAM_HEADER.pack(PT_LOAD, 5, offset, 0, 0, size, size, 4096))
    done = subprocess.run([str(built("rankrun")), "-n", "1", str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{program} is cut short, it has 120 of " in done.stderr


def test_the_fuzzers_follow_the_runtime() -> None:
    """What they compile is there, and they call it as it is; `make fuzz` alone, run by hand, would notice too late."""
    words = ["make", "--no-print-directory", "-C", str(HERE), "syntax"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
