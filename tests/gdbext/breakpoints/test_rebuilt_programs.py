"""A program that was built again between two runs: its breakpoints' conditions may name what it has no more."""

from __future__ import annotations

from pathlib import Path

from tests.support.gdb.places import RANKS
from tests.support.gdb.session import Session
from tests.support.running import built

SOURCE = """
#include <mpi.h>
int VARIABLE = 42;
void stop_here(void) {
    VARIABLE *= 2;
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    stop_here();
    MPI_Finalize();
    return VARIABLE != 84;
}
"""


def test_a_condition_on_a_variable_that_is_gone_stops_nothing(session: Session, tmp_path: Path) -> None:
    """As in a process, where GDB says that the condition is invalid at the location, and disables that."""
    (tmp_path / "named.c").write_text(SOURCE)
    answers = session.run(
        f"""
import subprocess

def build(name):
    command = ["{built("rankcc")}", "-g", "-O0", "-DVARIABLE=" + name, "named.c", "-o", "named"]
    subprocess.run(command, cwd="{tmp_path}", check=True, timeout=60)

build("before")
gdb.execute("break stop_here if before == 42")
gdb.execute("run")
stops = []
while gdb.selected_inferior().pid:
    stops.append(value("$_rank"))
    gdb.execute("continue")
tell("stops", sorted(stops))
build("after")
gdb.execute("run")
tell("listed", ask("info breakpoints 1"))
tell("is_alive", gdb.selected_inferior().pid != 0)
gdb.execute("condition 1 after == 42")
gdb.execute("run")
tell("stops_again", value("$_rank"))
""",
        "--args",
        built("rankrun"),
        "-n",
        RANKS,
        tmp_path / "named",
    )
    assert answers["stops"] == list(range(RANKS)), answers.output
    assert not answers["is_alive"] and "N*" in answers["listed"], answers.output
    assert answers["stops_again"] in range(RANKS)
    assert answers.output.count("exited normally") == 2 and "Error in testing" not in answers.output
