"""Damage that libFuzzer found the runtime to accept; `make fuzz` finds new ones (docs/development.md)."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from tests.fuzz.decoder import KEPT
from tests.fuzz.runtime import BUILT, HERE, NAMES, seeds
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


@pytest.mark.parametrize("method", ["pie", "pip", "fs", "tls", "none"])
def test_a_library_that_is_cut_short(method: str, tmp_path: Path) -> None:
    """The system's loader dies of SIGBUS where whole pages are not there, and reads the rest of a page as zeros."""
    library = tmp_path / "libtable.so"
    (tmp_path / "table.c").write_text("int table[20000] = {1}; int last(void) { return table[19999]; }")
    (tmp_path / "main.c").write_text("int last(void); int main(void) { return last(); }")
    rankcc = str(built("rankcc"))
    subprocess.run([rankcc, "-shared", "-fPIC", str(tmp_path / "table.c"), "-o", str(library)], check=True, timeout=60)
    words = [rankcc, str(tmp_path / "main.c"), "-o", str(tmp_path / "main"), str(library)]
    subprocess.run(words, check=True, timeout=60)
    whole = library.read_bytes()
    for size in (1000, 20_000, 80_000, 90_000):
        library.write_bytes(whole[:size])
        run = [str(built("rankrun")), "-n", "2", "--method", method, str(tmp_path / "main")]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, size
        assert done.stderr.startswith(f"rankrun: {library} is cut short, it has {size} of "), size


@pytest.fixture(scope="module")
def replay() -> Path:
    """The folder of the fuzzers without libFuzzer; that they can be built says that they call what is there."""
    words = ["make", "--no-print-directory", "--silent", "-j2", "-C", str(HERE), "replay"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILT / "replay"


@pytest.mark.parametrize("name", NAMES)
def test_kept_inputs_are_read_within_bounds(name: str, replay: Path, tmp_path: Path) -> None:
    """Those that once were findings, and those that fuzzing starts from, by the sanitizers' word."""
    for number, seed in enumerate(seeds(name)):
        (tmp_path / f"seed-{number}").write_bytes(seed)
    inputs = [*tmp_path.iterdir(), *(KEPT / f"rankrun-{name}").glob("*")]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
    words = [str(replay / name), *map(str, inputs)]
    done = subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
