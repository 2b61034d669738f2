"""A program that is built anew while GDB stays: the next `run` has the new one's symbols, as of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.running import built

SOURCE = """#include <mpi.h>
%s
int value = 42;
void here(void) {}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    here();
    MPI_Finalize();
    return 0;
}
"""
ADDED = "int added = 5, before[100] = {7};"


@pytest.mark.parametrize("method", ["pie", "fs"])
def test_a_program_that_is_built_anew(session: Session, rankrun: Path, tmp_path: Path, method: str) -> None:
    """Other variables, at other addresses: with the old symbols each would have another one's value."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(SOURCE % "")
    command = [str(built("rankcc")), "-g", str(source), "-o", str(program)]
    answers = session.run(
        f"""
        import subprocess
        def build(text):
            with open({str(source)!r}, "w") as file:
                file.write(text)
            subprocess.run({command}, check=True)
        build({SOURCE % ""!r})
        ask("break here")
        gdb.execute("run")
        tell("before", [ask("print value"), ask("print added"), ask("list 2,3")])
        build({SOURCE % ADDED!r})
        gdb.execute("run")
        tell("after", [value("value"), value("added"), ask("rank print added"), gdb.selected_frame().find_sal().line])
        tell("listed", ask("list 2,3"))
        """,
        "--args",
        rankrun,
        "--method",
        method,
        "-n",
        2,
        program,
    )
    assert "42" in answers["before"][0] and "No symbol" in answers["before"][1]
    assert "added" not in answers["before"][2] and ADDED in answers["listed"], answers.output
    assert answers["after"][:3] == [42, 5, "0: 5\n1: 5\n"]
    assert "here" in source.read_text().splitlines()[answers["after"][3] - 1]
