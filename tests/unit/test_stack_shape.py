"""Stacks that are recognized are those that a whole walk gives; one word that differs makes them strangers."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind import stack_shape, stack_walk
from pieglobalsfind.command import Moment
from pieglobalsfind.decoders import decode
from pieglobalsfind.model import RUNNING, Absent, Evidence, Rank, Rebase
from pieglobalsfind.stack_shape import PC, STACK_POINTER, Shape, is_of, shape_of
from pieglobalsfind.stack_walk import Walked
from pieglobalsfind.targets.live import LiveTarget
from tests.conftest import StartJob, built

PROGRAM = """
#include <alloca.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static void receive(void) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
__attribute__((noinline)) static void even(int rank) {
    char *room = alloca(64 + 16 * (rank % 3)); /* frames of ranks differ in size */
    memset(room, rank, 64);
    receive();
    printf("%d", room[rank % 64]);
}
static volatile int after;
__attribute__((noinline)) static void odd(int depth) {
    if (depth)
        odd(depth - 1);
    else
        receive();
    after++; /* so that this is no loop */
}
int main(int argc, char **argv) {
    int rank, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2)
        odd(rank % 8);
    else if (rank)
        even(rank);
    for (int turn = 0; turn < 100; turn++)
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    for (;;)
        ;
}
"""
RANKS = 40


@pytest.mark.parametrize(("method", "options"), [("pie", ["-O0"]), ("pie", ["-O2"]), ("fs", ["-O2"]), ("tls", ["-O0"])])
def test_as_a_whole_walk(
    start_job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, options: list[str]
) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    compiler = [str(built("rankcc")), f"--method={method}", "-g", *options, str(source), "-o", str(program)]
    subprocess.run(compiler, check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, "--method", method, program)
    job.wait_for("ready")
    target = LiveTarget(job.pid)

    def stacks() -> list[Walked]:
        moment = Moment(target, decode(target))
        return [moment.walker.stack(rank) for rank in moment.table.ranks if rank.state != RUNNING]

    def together() -> list[Walked]:
        moment = Moment(target, decode(target))
        found = moment.walker.stacks([rank for rank in moment.table.ranks if rank.state != RUNNING])
        return sorted((one for _, one in found if isinstance(one, Walked)), key=lambda one: one.rank)

    walks: list[Any] = []
    walk = stack_walk.Walker._walk

    def counted(*words: Any) -> tuple[list[int], str]:
        walks.append(words)
        return walk(*words)

    with monkeypatch.context() as patched:
        patched.setattr(stack_walk.Walker, "_walk", counted)
        recognized = stacks()
        walks_alone = len(walks)
        assert together() == recognized and len(walks) <= 2 * walks_alone
    monkeypatch.setattr(stack_shape, "is_of", lambda *words: False)
    assert recognized == stacks()
    assert len(recognized) == RANKS - 1 and len({one.calls for one in recognized}) >= 5
    assert walks_alone < RANKS // 2, "most were not walked"


BUSY = """
#include <mpi.h>
#include <stdio.h>
static int word;
__attribute__((noinline)) static void shallow(int peer) {
    MPI_Recv(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
    word++;
}
__attribute__((noinline)) static void deep(int peer, int depth) {
    if (depth)
        deep(peer, depth - 1);
    else
        MPI_Recv(&word, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    word++;
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready"), fflush(stdout);
    for (;;)
        if (rank % 2)
            shallow(rank - 1);
        else {
            MPI_Send(&word, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
            deep(rank + 1, 4);
        }
}
"""
BUSY_STACKS = {("main", "shallow", "MPI_Recv"), ("main", *["deep"] * 5, "MPI_Recv"), ("main", "MPI_Barrier")}


def test_ranks_that_are_switched_all_the_time(start_job: StartJob, tmp_path: Path) -> None:
    """What is read together is of one moment for each rank, or it is not believed."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(BUSY)
    subprocess.run([str(built("rankcc")), "-g", "-O1", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, program)
    job.wait_for("ready")
    target, seen = LiveTarget(job.pid), 0
    for _ in range(10):
        moment = Moment(target, decode(target))
        for _, walked in moment.walker.stacks(moment.table.ranks):
            if isinstance(walked, Walked):
                names = tuple(one.function for one in walked.calls)
                until = next(number for number, name in enumerate(names) if name.startswith("MPI_"))
                assert walked.ends == "" and (names[: until + 1] in BUSY_STACKS or names[until] == "MPI_Send"), names
                seen += 1
    assert seen > RANKS


def test_one_other_word() -> None:
    """Frame 0 finds its caller by the stack pointer and restores rbp, by which frame 1 finds its own."""
    rank, other = (make_rank(copy) for copy in (0x10000, 0x50000))
    first = {STACK_POINTER: 0x7000, PC: 0x10123, 6: 0xDEAD, 3: 1}
    frames = ((7, ((6, 0x7010), (PC, 0x7018))), (6, ((3, 0x7030), (6, 0x7038), (PC, 0x7040))))
    words = {0x7010: 0x7040, 0x7018: 0x10456, 0x7030: 99, 0x7038: 98, 0x7040: 0xAAAA}
    shape = shape_of(rank, first, frames, words, ())
    there = {STACK_POINTER: 0x9000, PC: 0x50123, 6: 0xBEEF, 3: 2}
    stack = [0, 0, 0x9040, 0x50456, 0, 0, 11, 12, 0xAAAA]
    assert shape.extent == 9 * 8
    assert is_of(shape, other, there, stack), "what no caller is found by may be anything"
    for place in (2, 3, 8):
        changed = [*stack[:place], stack[place] + 8, *stack[place + 1 :]]
        assert not is_of(shape, other, there, changed)
    assert not is_of(shape, other, {**there, PC: 0x50124}, stack)
    assert not is_of(shape, other, there, stack[:-1]), "its stack is too short"
    assert not is_of(shape, replace(other, placements=()), there, stack), "it has no copy"
    assert isinstance(shape, Shape)


def make_rank(copy: int) -> Rank:
    absent = Absent("nobody asks")
    return Rank(
        rank=0,
        state="blocked",
        processing_element=0,
        kernel_thread=0,
        context=absent,
        stack=absent,
        heap=absent,
        heap_used=absent,
        range=absent,
        waiting=None,
        switches=absent,
        placements=(Rebase(0, 0x1000, 0x1000, copy),),
        evidence=Evidence("registry", "here"),
    )
