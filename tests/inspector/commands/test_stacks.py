"""`inspector stacks` on a program whose every rank is where its source says."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from inspector.job.job import checked, open_job
from inspector.job.read_stacks import read_one
from pieglobalsfind.ranks.rankset import Span
from tests.support.gdb.places import make_core
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.places import gcore
from tests.support.running import BIN, Job, StartJob

EVEN = ["main", "even", "receive", "MPI_Recv"]
SPINS = ["main", "turn"]
PAUSED = "copied from the process while it stood still for "
ODD = ["main", "deeper", "deeper", "deeper", "odd", "receive", "MPI_Recv"]


@pytest.fixture
def held(start_ranks: StartRanks) -> Job:
    return start_ranks(SOURCES / "waits.c", loops=True)


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "inspector"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def inspect(*words: object) -> subprocess.CompletedProcess[str]:
    return run("stacks", *words)


def report(*words: object) -> dict[str, Any]:
    done = inspect(*words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def functions(found: dict[str, Any]) -> dict[str, Sequence[str]]:
    return {one["ranks"]: [call["function"] for call in one["calls"]] for one in found["stacks"]}


def test_a_running_job(held: Job) -> None:
    found = report(held.pid)
    assert found["schema"] == "ranklens-stacks-1" and found["rank_count"] == 4
    assert functions(found) == {"0,2": EVEN, "1": ODD, "3": SPINS}
    assert found["missing"] == [] and found["how"].startswith(PAUSED)
    (even,) = (one["calls"] for one in found["stacks"] if one["ranks"] == "0,2")
    source = (SOURCES / "waits.c").read_text().splitlines()
    assert Path(even[1]["file"]).name == "waits.c" and "even waits" in source[even[1]["line"] - 1]
    assert even[-1]["library"].endswith("librankmpi.so") and even[-1]["line"] == 0
    program = Path(even[0]["library"])
    assert program.name == "waits.so"
    program.unlink()
    if os.geteuid() == 0:  # others may not open a file that is there only under /proc/PID/map_files
        assert report(held.pid)["stacks"] == found["stacks"], "its name is what the process knows it by"


def test_without_a_stop(held: Job) -> None:
    """Of a rank that runs, the reason why it has no stack is said; a job whose ranks all wait is never stopped."""
    found = report(held.pid, "--nonblocking")
    assert functions(found) == {"0,2": EVEN, "1": ODD}
    assert [one["ranks"] for one in found["missing"]] == ["3"] and "running" in found["missing"][0]["reason"]
    waiting = report(held.pid, "--rank", "0-2")
    assert waiting["stacks"] == found["stacks"] and waiting["missing"] == []
    assert waiting["how"].startswith("read from the running process without stopping it")


def test_a_core_has_the_running_rank_too(held: Job, tmp_path: Path) -> None:
    found = report(make_core(held.pid, tmp_path))
    assert functions(found) == {"0,2": EVEN, "1": ODD, "3": ["main", "turn"]}
    assert found["missing"] == []
    assert functions(report(make_core(held.pid, tmp_path), "--rank", "/^turn$/")) == {"3": ["main", "turn"]}


def test_sets_of_ranks_by_state_and_function(held: Job) -> None:
    """One grammar with debuggers; of a rank that has no stack it is said that nobody knows whether it is meant."""
    unknown = "its function is unknown, it is running"
    assert functions(report(held.pid, "--rank", "/^turn$/")) == {"3": SPINS}
    found = report(held.pid, "--rank", "/^rec/", "--nonblocking")
    assert functions(found) == {"0,2": EVEN, "1": ODD}
    (missing,) = found["missing"]
    assert missing["ranks"] == "3" and missing["reason"].startswith(unknown)
    nobody = inspect(held.pid, "--rank", "/even|odd/", "--nonblocking")
    assert nobody.returncode == 1 and nobody.stdout.splitlines()[2].startswith(f"! rank 3: {unknown}")
    assert functions(report(held.pid, "--rank", "1,blocked")) == {"0,2": EVEN, "1": ODD}
    assert inspect(held.pid, "--rank", "running", "--folded").stdout == "main;turn 1\n"
    shown = run("globals", held.pid, "--rank", "/^rec/", "--json", "--nonblocking")
    groups = [load["groups"] for load in json.loads(shown.stdout)["globals"]]
    assert groups and {"0-2"} >= {",".join(group["ranks"] for group in one) for one in groups if len(one) == 1}
    assert shown.stderr.startswith(f"inspector: rank 3 is not shown: {unknown}") and shown.stderr.count("\n") == 1


def test_forms(held: Job) -> None:
    folded = inspect(held.pid, "--folded").stdout.splitlines()
    assert sorted(folded) == sorted([f"{';'.join(EVEN)} 2", f"{';'.join(ODD)} 1", "main;turn 1"])
    tree = inspect(held.pid).stdout.splitlines()
    assert (
        tree[1].startswith(PAUSED)
        and tree[2].startswith("main at waits.c:")
        and tree[2].endswith("[0-3]")
        and any(line.endswith("[0,2]") for line in tree)
    )
    flat = inspect(held.pid, "--flat").stdout.splitlines()
    assert flat[2] == "ranks 0,2:" and [line.split()[1] for line in flat[3:7]] == EVEN[::-1]
    whole = functions(report(held.pid, "--runtime"))["0,2"]
    assert whole[: len(EVEN)] == EVEN and len(whole) > len(EVEN)
    assert functions(report(held.pid, "--rank", "1-2")) == {"1": ODD, "2": EVEN}


@pytest.mark.parametrize("words", [["1", "--rank", "x"], ["99999999"], ["nofile"], ["1", "--tree", "--flat"]])
def test_bad_calls(words: list[str]) -> None:
    done = inspect(*words)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stdout == "" and done.stderr


def test_a_core_file_that_is_cut_short(start_ranks: StartRanks, tmp_path: Path) -> None:
    """It says so once, and nothing of ranks that lack it is made up."""
    job = start_ranks(SOURCES / "ring.c", ranks=7)
    core = gcore(job, tmp_path)
    whole = json.loads(run("globals", core, "own", "--json").stdout)["globals"]
    cut = tmp_path / "cut"
    size = notes_of(core)
    cut.write_bytes(core.read_bytes()[:size])
    sentence = f"core file cut is cut short, {size:,} of "
    stacks = inspect(cut, "--json")
    found = json.loads(stacks.stdout)
    assert stacks.stderr.startswith(f"inspector: {sentence}") and stacks.stderr.count("\n") == 1
    assert found["stacks"] == [] and {one["ranks"] for one in found["missing"]} == {"0-6"}
    assert "has a context that can't be checked, the core file is cut short" in stacks.stdout
    values = run("globals", cut, "own", "--json")
    assert values.stderr == stacks.stderr and json.loads(values.stdout)["globals"] == whole
    warnings = json.loads(run("report", cut, "--json").stdout)["warnings"]
    assert len([warning for warning in warnings if warning.startswith(sentence)]) == 1
    cut.write_bytes(core.read_bytes()[: 1 << 20])
    refused = run("ranks", cut)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "is cut short, 1,048,576 of " in refused.stderr
    assert "and no virtual ranks are found in what is left" in refused.stderr


def notes_of(core: Path) -> int:
    """Where GDB has put the notes: behind all memory."""
    with core.open("rb") as file:
        (notes,) = (segment for segment in ELFFile(file).iter_segments() if segment["p_type"] == "PT_NOTE")
        return int(notes["p_offset"])


def test_flight_recorder(held: Job, tmp_path: Path) -> None:
    """The newest files stay, each whole; the recorder ends with the job."""
    folder = tmp_path / "record"
    command = [str(BIN / "inspector"), "stacks", str(held.pid), "--every", "100ms", "--keep", "3", "-o", str(folder)]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert recorder.stderr is not None
        said = [recorder.stderr.readline() for _ in range(5)]
        assert all("written" in line and "%" in line for line in said), said
        held.close()
        assert recorder.wait(60) == 0
    finally:
        recorder.kill()
        recorder.wait()
    files = sorted(folder.iterdir())
    assert len(files) == 3
    numbers = [int(file.stem.rpartition("-")[2]) for file in files]
    assert numbers == list(range(numbers[0], numbers[0] + 3)) and numbers[0] >= 3
    assert functions(json.loads(files[0].read_text())) == {"0,2": EVEN, "1": ODD, "3": SPINS}


@pytest.mark.parametrize("words", [["--every", "x", "-o", "d"], ["--every", "1s"], ["--every", "0", "-o", "d"]])
def test_a_bad_recorder(words: list[str], tmp_path: Path) -> None:
    done = inspect(1, *words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["--job", "1"], []])
def test_a_recorder_of_no_process_says_what_it_reads(words: list[str], tmp_path: Path) -> None:
    done = inspect(*words, "--every", "500ms", "-o", tmp_path / "d")
    assert (done.returncode, done.stdout) == (2, "") and not (tmp_path / "d").exists()
    assert done.stderr.startswith("inspector: the flight recorder reads one process: give its PID")


def test_registers_of_an_earlier_wait_are_not_believed(start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """A rank that gives way and goes on at once says that it is ready, and has saved no registers for that."""
    program = tmp_path / "polls"
    command = [str(BIN / "rankcc"), "-g", "-O1", str(SOURCES / "polls.c"), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    job = start_job(rankrun, "-n", 2, program)
    job.wait_for("ready")
    with checked(open_job(str(job.pid), None)) as opened:
        for _ in range(15):
            found = read_one(opened, (Span(0, 0),), with_runtime=False)
            stacks = [[call.function for call in calls] for calls in found.calls.values()]
            assert all(stack[:2] == ["main", "poll_for_ever"] for stack in stacks), stacks
            assert stacks or "is invalid" not in found.missing[0], found.missing


NAPS = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static void nap(void) {
    puts("naps");
    fflush(stdout);
    for (;;)
        usleep(100000000);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    nap();
    return 0;
}
"""


def test_a_rank_that_sleeps_in_code_with_frame_pointers(start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """Of a thread that runs, Linux tells where it is and its stack pointer alone: why its callers lack is said."""
    source, program = tmp_path / "naps.c", tmp_path / "naps"
    source.write_text(NAPS)
    subprocess.run([str(BIN / "rankcc"), "-g", "-O0", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(rankrun, "-n", 1, program)
    job.wait_for("naps")
    said = inspect(job.pid, "--nonblocking").stdout
    why = r"its stack is not whole, the caller of .* is found by a register that is known only while the process stands"
    assert re.search(why, said) and "main at" not in said and "nap at naps.c:9" in said, said
    for words in ([], ["--freeze"]):
        whole = inspect(job.pid, *words).stdout
        assert "main at naps.c:13" in whole and "not whole" not in whole
