"""`inspector ranks`: memory by category and switches, against the file's headers and the program's own count."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from inspector.analysis.payload import CATEGORIES, read_payload
from inspector.analysis.rank_memory import holdings
from inspector.job.job import open_job
from pieglobalsfind.model import MIGRATED_OUT, Absent
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import ROOT, Job, StartJob, built

TURNS = 500
STACK = 1 << 20
BLOCK = 300_000
PROGRAM = f"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
char zeros[100000], initialized[5000] = {{1}};
void *block;
int main(int argc, char **argv) {{
    int rank, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        block = malloc({BLOCK});
    for (int turn = 0; turn < {TURNS} && rank < 2; turn++) {{
        if (rank == turn % 2)
            MPI_Send(&word, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD);
        else
            MPI_Recv(&word, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }}
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}}
"""


def inspected(*words: object, columns: str = "") -> str:
    environment = {**os.environ, **({"COLUMNS": columns} if columns else {})}
    command = [str(built("inspector")), "ranks", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(job: Job) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(inspected(job.pid, "--json"))["ranks"]
    return found


@pytest.fixture
def turns(start_job: StartJob, tmp_path: Path) -> Job:
    source, program = tmp_path / "turns.c", tmp_path / "turns"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 3, "--stack-size", STACK, program)
    job.wait_until_still()
    return job


def test_switches_are_those_of_the_program(turns: Job) -> None:
    """Ranks 0 and 1 hand a word to and fro, and each is switched to for every second message; rank 2 never is."""
    found = as_json(turns)
    for one in found[:2]:
        assert TURNS // 2 <= one["switches"] <= TURNS // 2 + 10
    assert found[2]["switches"] < 10


def test_memory_is_that_of_the_file_and_the_program(turns: Job, tmp_path: Path) -> None:
    with (tmp_path / "turns").open("rb") as file:
        loads = [segment for segment in ELFFile(file).iter_segments() if segment["p_type"] == "PT_LOAD"]
        code = sum(load["p_memsz"] for load in loads if load["p_flags"] & 1)
        bss = sum(load["p_memsz"] - load["p_filesz"] for load in loads)
    found = as_json(turns)
    for one in found:
        memory = one["memory"]
        assert one["unknown"] == [] and memory["code"] == code and memory["bss"] == bss >= 100_000
        assert memory["data"] >= 5000
        assert memory["stack_used"] + memory["stack_unused"] == STACK and 0 < memory["stack_used"] < 1 << 16
    more = found[1]["memory"]["heap_used"] - found[0]["memory"]["heap_used"]
    assert BLOCK <= more <= BLOCK + 4096


@pytest.mark.parametrize("columns", ["60", "200"])
def test_text(turns: Job, columns: str) -> None:
    said = inspected(turns.pid, columns=columns)
    words = " ".join(said.split())
    assert "heap used" in words and "?" not in said
    assert max(map(len, said.splitlines())) <= int(columns)
    if columns == "200":
        row = next(line for line in said.splitlines() if line.startswith("2 ") and "blocked" in line)
        assert f" {as_json(turns)[2]['switches']} " in row


def test_what_memory_alone_does_not_tell(start_job: StartJob, tmp_path: Path) -> None:
    """Copies without a registry: state, element, stack, heap and switches are said to be unknown, never 0 or ready."""
    (tmp_path / "library.c").write_text("int counter = 5; int add(int a) { return counter += a; }\n")
    for command in (
        ["gcc", "-g", "-shared", "-fPIC", "-o", "library.so", "library.c"],
        ["gcc", "-o", "copies", str(ROOT / "tests" / "pieglobalsfind" / "cli" / "sources" / "copies.c")],
    ):
        subprocess.run(command, check=True, cwd=tmp_path, timeout=60)
    job = start_job(tmp_path / "copies", tmp_path / "library.so", 3)
    job.wait_for("ready")
    for one in as_json(job):
        assert (one["state"], one["processing_element"]) == ("unknown", -1)
        assert one["switches"] is None and one["memory"]["code"] > 0
        assert {name for name, size in one["memory"].items() if size is None} == {
            "heap_used",
            "heap_free",
            "stack_used",
            "stack_unused",
        }
        assert {sentence.split(" unknown: ")[0] for sentence in one["unknown"]} == {"switches", "heap", "stack"}
    said = inspected(job.pid)
    assert "ranks 0-2: heap unknown: " in said and "\t?\t" in said
    assert any(line.split()[:4] == ["0-2", "unknown", "-", "-"] for line in said.splitlines()), said


def test_a_rank_that_has_left(start_ranks: StartRanks) -> None:
    job = open_job(str(start_ranks(SOURCES / "waits.c", loops=True).pid), None)
    away = replace(job.table.ranks[0], state=MIGRATED_OUT)
    left, stayed = holdings((away, job.table.ranks[1]), read_payload(job)[1:2])
    assert isinstance(left.memory, Absent) and isinstance(left.total, Absent)
    assert left.unknown == ("memory unknown: its image is in another process",)
    assert isinstance(stayed.memory, dict) and stayed.total == sum(size or 0 for size in stayed.memory.values())
    assert set(stayed.memory) == set(CATEGORIES)
