"""A breakpoint in a library of the program's, with a condition on the program's own variable."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.running import built

RANKS = 3
LIBRARY = "int deeper(int x) { return x + 4; }\nint pend(int x) { return deeper(x); }\n"
PROGRAM = """#include <mpi.h>
int turn = 0;
int pend(int x);
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int x = 10; turn < 3; turn++)
        x = pend(x);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("disabled", [False, True])
def test_every_rank_stops_where_the_condition_holds(
    session: Session, rankrun: Path, tmp_path: Path, disabled: bool
) -> None:
    """As symbols move the library has its new place before GDB knows the program's variables there."""
    for name, text in (("pend.c", LIBRARY), ("program.c", PROGRAM)):
        (tmp_path / name).write_text(text)
    library, program = tmp_path / "libpend.so", tmp_path / "program"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", str(tmp_path / "pend.c"), "-o", str(library)], check=True)
    link = [str(tmp_path / "program.c"), str(library), f"-Wl,-rpath,{tmp_path}", "-o", str(program)]
    subprocess.run([str(built("rankcc")), "-g", *link], check=True)
    answers = session.run(
        f"""
        ask("break main")
        gdb.execute("run")
        ask("break deeper if turn == 1")
        if {disabled}:
            gdb.execute("disable 2")
        gdb.execute("run")
        gdb.execute("delete 1")
        gdb.execute("enable 2")
        stops = []
        gdb.execute("continue")
        while gdb.selected_inferior().pid and len(stops) < 20:
            stops.append([value("$_rank"), value("turn"), value("x")])
            gdb.execute("continue")
        tell("stops", stops)
        """,
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
    )
    assert sorted(answers["stops"]) == [[rank, 1, 14] for rank in range(RANKS)], answers.output
