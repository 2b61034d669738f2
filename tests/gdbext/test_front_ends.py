"""What programs that drive GDB by its machine interface are told of ranks; the oracle is a process under MPICH."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, SOURCES, compile_program
from tests.support.gdb.session import EXTENSION

SETTINGS = ("debuginfod enabled off", "startup-with-shell off", "breakpoint pending on", "confirm off")
ADDRESS = r'"0x[0-9a-f]+"'


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("ticks"), "ticks.c")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("process") / "ticks"
    subprocess.run(["mpicc.mpich", "-g", "-O0", str(SOURCES / "ticks.c"), "-o", str(program)], check=True, timeout=120)
    return program


def conversation(gdb: Path, commands: list[str], program: list[object], extension: bool) -> str:
    """What GDB says to commands; it takes the next where the program has stopped."""
    settings = [word for setting in SETTINGS for word in ("-iex", f"set {setting}")]
    source = ["-ix", str(EXTENSION)] if extension else []
    words = [str(gdb), "-nx", "-q", "--interpreter=mi3", *settings, *source, "--args", *map(str, program)]
    typed = "".join(f"{one}\n" for one in [*commands, "-gdb-exit"])
    done = subprocess.run(words, input=typed, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def comparable(record: str) -> str:
    """Without addresses, values, numbers of breakpoints, and which processor it was."""
    record = re.sub(r'(bkptno|core|thread-id)="-?\d+"', r'\1="N"', re.sub(ADDRESS, '"ADDRESS"', record))
    return re.sub(r'value="\d+"', 'value="N"', record)


def records(said: str, form: str) -> list[str]:
    return [comparable(one) for one in re.findall(form, said, re.M)]


@pytest.mark.parametrize("settings", [[], ["-enable-frame-filters", "-enable-pretty-printing"]], ids=["", "filters"])
def test_stops_and_stacks(gdb: Path, rankrun: Path, ticks: Path, process: Path, settings: list[str]) -> None:
    asked = [
        *settings,
        "-break-insert -f turn",
        "-exec-run",
        *["-exec-continue"] * (RANKS - 1),
        "-stack-list-arguments 2",
        "-stack-list-variables --simple-values",
        "-stack-list-variables --frame 1 --simple-values",
    ]
    ranks = conversation(gdb, asked, [rankrun, "-n", RANKS, ticks, 1000], extension=True)
    native = conversation(gdb, asked, [process, 1000], extension=False)
    stops = records(ranks, r"^\*stopped.*")
    assert stops == records(native, r"^\*stopped.*")[:1] * RANKS, ranks
    answers = r"^\^done,(?:stack-args|variables).*"
    assert records(ranks, answers) == records(native, answers)
    hits = re.findall(r"Rank (\d) hit Breakpoint 1", ranks)
    assert set(hits) <= set(re.findall(r'^\*stopped.*name="rank",value="(\d)"', ranks, re.M))
    assert len(set(re.findall(r"Rank (\d) hit Breakpoint 1", ranks))) >= RANKS - 1, ranks
