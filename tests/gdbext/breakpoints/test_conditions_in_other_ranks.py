"""Conditions that are false at most hits: they stop where the program would, and symbols stay where they are."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.running import built

RANKS = 6
TURNS = 40
PROGRAM = """#include <mpi.h>
struct Domain {
    int cycle;
    double time;
    int step() { return cycle * 2; }
};
static int my_rank;
int total;
__attribute__((noinline)) int advance(Domain &domain, int turn, const int *half) {
    int twice = 2 * turn;
    total += twice + *half;
    domain.cycle++;
    domain.time += 0.5;
    return total;
}
int main(int argc, char **argv) {
    Domain domain = {100, 0.0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    for (int turn = 0; turn < TURNS; turn++) {
        int half = turn / 2;
        advance(domain, turn, &half);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
"""
# And whether it stops in a rank's turn.
CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "turn % 20 == 7": lambda rank, turn: turn % 20 == 7,
    "domain.cycle == 130 && my_rank == 2": lambda rank, turn: rank == 2 and turn == 30,
    "domain.time > 18.9 && $_rank != 3": lambda rank, turn: turn >= 38 and rank != 3,
    "$_rank == 1 && turn > 37": lambda rank, turn: rank == 1 and turn > 37,
    "($_rank == 1 || $_rank >= 5) && *half == 4": lambda rank, turn: rank in (1, 5) and turn in (8, 9),
    "$_rank == 4": lambda rank, turn: rank == 4,
    "turn == 3 || $_rank == 9": lambda rank, turn: turn == 3,
    "turn == $wanted": lambda rank, turn: turn == 11,
    "my_rank == 5 && turn * 2 == (int) domain.time * 4": lambda rank, turn: rank == 5 and turn % 2 == 0,
}
FORTRAN = """module numbers
  integer :: mine = -1
end module
subroutine advance(turn)
  use numbers
  integer :: turn
  mine = mine + 0 * turn
end subroutine
program main
  use mpi
  use numbers
  integer :: ierr, counter
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, mine, ierr)
  do counter = 0, TURNS - 1
    call advance(counter)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end do
  call MPI_Finalize(ierr)
end program
"""
FORTRAN_CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "turn == 30": lambda rank, turn: turn == 30,
    "mine == 3 .and. turn > 36": lambda rank, turn: rank == 3 and turn > 36,
    "$_rank == 4 .and. turn == 5": lambda rank, turn: (rank, turn) == (4, 5),
}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "compiler, name, text, conditions",
    [("rankcxx", "program.cpp", PROGRAM, CONDITIONS), ("rankfort", "program.F90", FORTRAN, FORTRAN_CONDITIONS)],
    ids=["C++", "Fortran"],
)
def test_they_hold_in_the_ranks_in_which_they_are_true(
    session: Session,
    rankrun: Path,
    tmp_path: Path,
    compiler: str,
    name: str,
    text: str,
    conditions: dict[str, Callable[[int, int], bool]],
    level: str,
) -> None:
    source, program = tmp_path / name, tmp_path / "program"
    source.write_text(text)
    words = [str(built(compiler)), "-g", level, "-fno-inline", f"-DTURNS={TURNS}", str(source), "-o", str(program)]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)  # where gfortran leaves its .mod files
    answers = session.run(
        f"""
        from gdbext.extension import _extension
        ask("set $wanted = 11")
        gdb.execute("break MPI_Init")
        gdb.execute("run")  # so that GDB reads conditions in the program's language
        for condition in {list(conditions)}:
            ask("delete")
            gdb.execute("break advance")
            gdb.execute(f"condition $bpnum {{condition}}")
            stops, focus = [], _extension.debugger.state().focus
            moves = focus.moves
            gdb.execute("run")
            while gdb.selected_inferior().pid:
                stops.append([value("$_rank"), value("turn")])
                gdb.execute("continue")
            tell(condition, [stops, focus.moves - moves])
        """,
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
    )
    for condition, is_expected in conditions.items():
        stops, moves = answers[condition]
        wanted = [[rank, turn] for rank in range(RANKS) for turn in range(TURNS) if is_expected(rank, turn)]
        assert sorted(stops) == wanted, condition + answers.output
        assert moves <= 2 * len(stops) + RANKS, condition  # of RANKS * TURNS hits
