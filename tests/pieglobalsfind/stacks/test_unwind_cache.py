"""Stacks that are recognized are those that a whole walk gives; one word that differs makes them strangers."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.registry import live_state
from pieglobalsfind.machine.x86_64 import X86_64
from pieglobalsfind.model import RUNNING, Absent, Evidence, Rank, Rebase
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks import unwind, unwind_cache
from pieglobalsfind.stacks.unwind import UnwoundStack
from pieglobalsfind.stacks.unwind_cache import StackShape, is_of, shape_of
from pieglobalsfind.targets.live import LiveTarget
from tests.support.running import Job, StartJob, built

RSP, PC = X86_64.stack_pointer, X86_64.pc
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
    after++; /* so that this is not a loop */
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

    def stacks() -> list[UnwoundStack]:
        moment = ProcessView(target, decode(target))
        return [moment.walker.stack(rank) for rank in moment.table.ranks if rank.state != RUNNING]

    def together() -> list[UnwoundStack]:
        moment = ProcessView(target, decode(target))
        found = moment.walker.stacks([rank for rank in moment.table.ranks if rank.state != RUNNING])
        return sorted((one for _, one in found if isinstance(one, UnwoundStack)), key=lambda one: one.rank)

    walks: list[Any] = []
    alone: list[Any] = []
    walk, stack = unwind.Walker._walk, unwind.Walker.stack

    def counted(*words: Any) -> tuple[list[int], str]:
        walks.append(words)
        return walk(*words)

    def counted_alone(*words: Any) -> UnwoundStack:
        alone.append(words)
        return stack(*words)

    with monkeypatch.context() as patched:
        patched.setattr(unwind.Walker, "_walk", counted)
        recognized = stacks()
        walks_alone = len(walks)
        patched.setattr(unwind.Walker, "stack", counted_alone)
        assert together() == recognized and len(walks) <= 2 * walks_alone
        assert len(alone) < RANKS // 2, "most were read together"
    monkeypatch.setattr(unwind_cache, "is_of", lambda *words: False)
    assert recognized == stacks()
    assert len(recognized) == RANKS - 1 and len({one.calls for one in recognized}) >= 5
    assert walks_alone < RANKS // 2, "most were not walked"


TAKE = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static int word;
__attribute__((noinline)) static void take(int peer, int tag, int depth) {
    if (depth)
        take(peer, tag, depth - 1);
    else
        MPI_Recv(&word, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    word++; /* so that this is not a loop */
}
"""
BUSY = """
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready"), fflush(stdout);
    for (unsigned turn = 0;; turn++)
        if (rank % 2) {
            take(rank - 1, 1, turn % 2 * 4);
            MPI_Send(&word, 1, MPI_INT, rank - 1, 2, MPI_COMM_WORLD);
        } else {
            MPI_Send(&word, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
            take(rank + 1, 2, turn % 2 * 4);
        }
}
"""
SHALLOW, DEEP = ("main", "take", "MPI_Recv"), ("main", *["take"] * 5, "MPI_Recv")


def until_mpi(walked: UnwoundStack) -> tuple[str, ...]:
    """The functions that a rank is in, down to the call of MPI."""
    names = tuple(call.function for call in walked.calls)
    until = next((number for number, name in enumerate(names) if name.startswith("MPI_")), None)
    assert walked.ends == "" and until is not None, (names, walked.ends)
    return names[: until + 1]


def build(folder: Path, source: str) -> Path:
    file, program = folder / "program.c", folder / "program"
    file.write_text(source)
    subprocess.run([str(built("rankcc")), "-g", "-O1", str(file), "-o", str(program)], check=True, timeout=60)
    return program


def start(start_job: StartJob, folder: Path, source: str, *words: object) -> Job:
    """Build and start a program, once it is ready."""
    job = start_job(built("rankrun"), "-n", RANKS, build(folder, source), *words)
    job.wait_for("ready")
    return job


def test_ranks_that_are_switched_all_the_time(start_job: StartJob, tmp_path: Path) -> None:
    """What is read together is of one moment for each rank, or it is not believed: each call is as deep or as flat."""
    target, seen = LiveTarget(start(start_job, tmp_path, TAKE + BUSY).pid), Counter[tuple[str, ...]]()
    for _ in range(10):
        moment = ProcessView(target, decode(target))
        seen.update(
            until_mpi(one) for _, one in moment.walker.stacks(moment.table.ranks) if isinstance(one, UnwoundStack)
        )
    assert set(seen) <= {SHALLOW, DEEP, ("main", "MPI_Send"), ("main", "MPI_Barrier")}, seen
    assert seen[SHALLOW] and seen[DEEP] and sum(seen.values()) > RANKS, seen


TOLD = """
int main(int argc, char **argv) {
    int rank, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank) {
        take(0, 1, 4);
        take(0, 2, 0);
    }
    for (int again = 0; again < 2; again++) {
        for (int turn = 0; turn < 100; turn++)
            MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE); /* the others go on meanwhile */
        puts(again ? "moved" : "ready");
        fflush(stdout);
        while (!again && access(argv[1], F_OK))
            usleep(1000);
        for (int other = 1; other < RANKS && !again; other++)
            MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    }
    for (;;)
        pause();
}
"""


def test_ranks_that_go_on_after_they_were_read(
    start_job: StartJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All go on when their stacks have been read together, and before their records are read again."""
    job = start(start_job, tmp_path, TAKE + TOLD.replace("RANKS", str(RANKS)), tmp_path / "go")
    readings: list[Any] = []
    records_now = live_state.records_now

    def then(*words: Any) -> Any:
        readings.append(words)
        if len(readings) == 2:
            (tmp_path / "go").touch()
            job.wait_for("moved")
        return records_now(*words)

    monkeypatch.setattr(unwind, "records_now", then)
    target = LiveTarget(job.pid)
    moment = ProcessView(target, decode(target))
    found = [one for _, one in moment.walker.stacks(moment.table.ranks[1:])]
    assert len(readings[0][2]) == RANKS - 2, "all but the first were read together"
    stacks = [until_mpi(one) for one in found if isinstance(one, UnwoundStack)]
    assert stacks == [DEEP, *[SHALLOW] * (RANKS - 2)], "the first was read before all went on"


def test_one_other_word() -> None:
    """Frame 0 finds its caller by the stack pointer and restores rbp, by which frame 1 finds its own."""
    rank, other = (make_rank(copy) for copy in (0x10000, 0x50000))
    first = {RSP: 0x7000, PC: 0x10123, 6: 0xDEAD, 3: 1}
    frames = ((7, ((6, 0x7010), (PC, 0x7018))), (6, ((3, 0x7030), (6, 0x7038), (PC, 0x7040))))
    words = {0x7010: 0x7040, 0x7018: 0x10456, 0x7030: 99, 0x7038: 98, 0x7040: 0xAAAA}
    shape = shape_of(X86_64, rank, first, frames, words, ())
    there = {RSP: 0x9000, PC: 0x50123, 6: 0xBEEF, 3: 2}
    stack = [0, 0, 0x9040, 0x50456, 0, 0, 11, 12, 0xAAAA]
    assert shape.extent == 9 * 8
    assert is_of(shape, other, there, stack), "what no caller is found by may be anything"
    for place in (2, 3, 8):
        changed = [*stack[:place], stack[place] + 8, *stack[place + 1 :]]
        assert not is_of(shape, other, there, changed)
    assert not is_of(shape, other, {**there, PC: 0x50124}, stack)
    assert not is_of(shape, other, there, stack[:-1]), "its stack is too short"
    assert not is_of(shape, replace(other, placements=()), there, stack), "it has no copy"
    assert isinstance(shape, StackShape)


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
