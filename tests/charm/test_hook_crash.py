"""What the crash handler of the hook module writes, against the lines that addr2line finds for it.

The program says by comments in its source where each frame must be; `crash` is the innermost.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, build

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 4
GUILTY = 2
METHODS = (*COPIES, "pip", "fs", "none")
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
PRIVATE int rank = -1;
volatile int *nowhere;
void (*volatile absent)(void);
__attribute__((noinline)) static int crash(const char *how, int depth) {
  char room[1024];
  memset(room, depth, sizeof room);
  if (!strcmp(how, "null")) return *nowhere;   /* null */
  if (!strcmp(how, "abort")) abort();          /* abort */
  if (!strcmp(how, "jump")) absent();          /* jump */
  if (depth < 100000000)
    return crash(how, depth + 1) + room[depth % 1024];
  return 0;
}
__attribute__((noinline)) int middle(const char *how) {
  return crash(how, 0) + 1;                    /* middle */
}
int main(int count, char **words) {
  int me; /* `rank` is one for all ranks where globals are not privatized */
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  rank = me;
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 2) printf("%d\n", middle(words[1])); /* main */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""
FRAME = re.compile(r"^  #(\d+)  (?:(\w+)\+(0x[0-9a-f]+)  )?(\S+)\+(0x[0-9a-f]+)$", re.MULTILINE)
INNERMOST = {"null": ("null", "SIGSEGV at address 0x0"), "abort": ("abort", "SIGABRT"), "jump": ("jump", "SIGSEGV")}


@pytest.fixture(scope="module", params=METHODS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp(request.param)
    build(made, request.param, "c", with_hook=True, source=SOURCE)
    return made


def _crash(folder: Path, how: str, wish: str = "crash") -> tuple[int, str]:
    """The exit status and the error output."""
    environment = dict(os.environ, RANKDEBUG=wish)
    done = subprocess.run(
        ["./prog", how, f"+vp{RANKS}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        errors="replace",
    )
    return done.returncode, done.stderr


def _line_of(marker: str) -> int:
    return next(number for number, text in enumerate(SOURCE.splitlines(), 1) if f"/* {marker} */" in text)


def _lines_of(folder: Path, frames: list[tuple[str, str, str, str, str]]) -> list[int]:
    """Lines of the program that frames are in; of callers, of the instruction before the one that is returned to."""
    found = []
    for number, _, _, file, offset in frames:
        if file.startswith("prog"):
            address = int(offset, 16) - (number != "0")
            built = re.sub(r"\.user\.\d+\.so$", ".user.so", file)  # AMPI copies it for each rank of fs
            command = ["addr2line", "-e", built, hex(address)]
            said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout
            if "prog.c:" in said:
                found.append(int(said.partition("prog.c:")[2].split()[0]))
    return found


@pytest.mark.parametrize("how", list(INNERMOST))
def test_every_frame_is_where_the_source_says(folder: Path, how: str) -> None:
    marker, words = INNERMOST[how]
    status, said = _crash(folder, how)
    assert status in (-signal.SIGSEGV, -signal.SIGABRT, 1), said  # as without the handler
    assert re.search(rf"^rankdebug: rank {GUILTY} \(process \d+, thread \d+\): {words}", said, re.MULTILINE), said
    frames = FRAME.findall(said)
    assert _lines_of(folder, frames)[:3] == [_line_of(marker), _line_of("middle"), _line_of("main")], said
    names = [name for _, name, _, file, _ in frames if file.startswith("prog") and name]
    assert names[:3] == ["crash", "middle", "AMPI_Main"], said
    assert "startTCharmThread" in names[-1], said  # the whole stack, and no further
    for _, name, offset, file, at in frames:
        if name in ("crash", "middle"):
            assert int(at, 16) - int(offset, 16) == _address_of(folder / file, name)


def _address_of(file: Path, name: str) -> int:
    said = subprocess.run(["nm", file], check=True, capture_output=True, text=True, timeout=60).stdout
    return next(int(line.split()[0], 16) for line in said.splitlines() if line.split()[-1] == name)


def test_a_stack_that_overflows_is_its_own_ranks(folder: Path) -> None:
    _, said = _crash(folder, "overflow")
    assert f"rankdebug: rank {GUILTY} " in said
    assert said.count("  crash+0x") > 50
    assert "\n  and more\n" in said


def test_a_stripped_program_has_offsets(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "stripped"
    shutil.copytree(folder, copy)
    for file in (*copy.glob("prog*.so"), copy / "prog"):
        subprocess.run(["strip", file], check=True, timeout=60)
    status, said = _crash(copy, "null")
    frames = FRAME.findall(said)
    assert status
    # Debug information of the same file before it was stripped
    assert _lines_of(folder, frames)[:3] == [_line_of("null"), _line_of("middle"), _line_of("main")], said


def test_without_being_asked_nothing_is_said(folder: Path) -> None:
    assert "rankdebug:" not in _crash(folder, "null", "")[1]
