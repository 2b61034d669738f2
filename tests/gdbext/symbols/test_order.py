"""Names that a library with debug information has, too: GDB shows the program's, as in a process.

The oracle is the same program as one process for each rank. The library is the process's; no rank has a copy of it.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.running import built

RANKS = 70  # more than have anchors at a time
ASKED_RANKS = 0, 5, 66
LIBRARY = """
static int twin = 1;
enum twin_kind { TWIN_KIND = 1 };
struct twin_type { char in_library[100]; };
static struct twin_type a_type;
static enum twin_kind a_kind = TWIN_KIND;
static int twin_step(int by) { return twin += by; }
int in_library(void) { return twin_step(1) + a_type.in_library[0] + a_kind; }
"""
MAIN = """
#include <stdlib.h>
void set(int);
int in_program(void);
void reached(void) {}
int number;
#ifdef JOB
#include <mpi.h>
#endif
int main(int argc, char **argv) {
    number = argc > 1 ? atoi(argv[1]) : 0;
#ifdef JOB
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
#endif
    set(number);
#ifdef JOB
    MPI_Barrier(MPI_COMM_WORLD);
#endif
    reached();
#ifdef JOB
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
#endif
    return in_program() < 0;
}
"""
OTHER = """
enum twin_kind { OTHER_KIND, TWIN_KIND = 100 };
struct twin_type { long in_program; };
static int twin = 2;
static struct twin_type a_type;
static enum twin_kind a_kind = TWIN_KIND;
static int twin_step(int by) { return twin += by; }
void set(int number) { twin = 100 + number; a_type.in_program = number; }
int in_program(void) { return twin_step(1) + a_type.in_program + a_kind; }
"""
ASKED = (
    *("print twin", "output twin", "print &twin", "whatis twin_step", "print twin_step", "ptype struct twin_type"),
    *("print sizeof (struct twin_type)", "print (int) TWIN_KIND", "print a_type", "info address twin"),
    *("info scope twin_step", "info symbol twin_step"),
)
BOTH = ("list twin_step", "info line twin_step")  # GDB shows both in the order of their addresses in its own memory
ASK = f"""
import re
def asked():
    gdb.execute("frame function main")
    answers = [ask(command) for command in {ASKED}]
    answers += ["".join(sorted(ask(command).splitlines())) for command in {BOTH}]
    return [re.sub("0x[0-9a-f]+|[$][0-9]+|of /.*", "X", answer) for answer in answers]
gdb.execute("set environment LD_PRELOAD " + LIBRARY)
"""


@dataclass(frozen=True)
class Twins:
    """The program as a process and for ranks, and the library."""

    alone: Path
    job: Path
    library: Path


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    folder = tmp_path_factory.mktemp("twins")
    sources = {"library.c": LIBRARY, "main.c": MAIN, "other.c": OTHER}
    for name, text in sources.items():
        (folder / name).write_text(text)
    made = Twins(folder / "alone", folder / "job", folder / "libtwin.so")
    program = ["-g", "-O0", "main.c", "other.c", "-o"]
    for command in (
        ["cc", "-g", "-O0", "-shared", "-fPIC", "library.c", "-o", made.library],
        ["cc", *program, made.alone],
        [built("rankcc"), "-DJOB", *program, made.job],
    ):
        subprocess.run(list(map(str, command)), check=True, timeout=60, cwd=folder)
    return made


def in_process(session: Session, twins: Twins, number: int, script: str) -> object:
    """What the script tells of `answers` in the process that does what a rank does."""
    return session.run(
        f"LIBRARY = {str(twins.library)!r}\n{ASK}\n{script}",
        "--args",
        twins.alone,
        number,
        source=False,
    )["answers"]


def test_print_and_list(session: Session, rankrun: Path, twins: Twins) -> None:
    """At a stop, and in every rank that is selected then, also from the frame of an MPI call."""
    ask = 'gdb.execute("tbreak reached")\ngdb.execute("run")\ntell("answers", asked())'
    told = session.run(
        f"""
LIBRARY = {str(twins.library)!r}
{ASK}
gdb.execute("tbreak reached")
gdb.execute("run")
stopped = value("$_rank")
tell("stopped", [stopped, asked()])
answers, from_call, again = {{}}, {{}}, {{}}
for rank in range({RANKS}):
    gdb.execute(f"rank {{rank}}")
    gdb.execute("frame function main")
    if rank != stopped:
        gdb.execute("down")
    from_call[rank] = [gdb.selected_frame().name(), value("twin")]
    if rank in {ASKED_RANKS}:
        answers[rank] = asked()
for rank in reversed(range({RANKS})):
    gdb.execute(f"rank {{rank}}")
    again[rank] = value("twin")
tell("answers", answers)
tell("from_call", from_call)
tell("again", again)
tell("printed", ask("rank print twin"))
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        twins.job,
    )
    assert "warning:" not in told.output and "ranklens failed" not in told.output, told.output
    rank, answers = told["stopped"]
    assert answers == in_process(session, twins, rank, ask)
    for number in ASKED_RANKS:
        assert told["answers"][str(number)] == in_process(session, twins, number, ask), f"rank {number}"
    values = {str(number): 100 + number for number in range(RANKS)}
    assert told["again"] == values
    assert {number: value for number, (_, value) in told["from_call"].items()} == values
    assert "MPI_Barrier" in {name for name, _ in told["from_call"].values()}
    printed = [(number, str(value)) for number, value in values.items()]
    assert re.findall(r"(?m)^(\d+): (\d+)$", told["printed"]) == printed


def test_a_condition(session: Session, rankrun: Path, twins: Twins) -> None:
    """It is of the program's variable in each rank's copy, where the function's own file has no such name."""
    script = """
gdb.execute("break reached if twin == 160")
gdb.execute("run")
tell("answers", functions()[0] if gdb.selected_inferior().pid else "")
"""
    assert [in_process(session, twins, number, script) for number in (59, 60)] == ["", "reached"]
    told = session.run(
        f"LIBRARY = {str(twins.library)!r}\n{ASK}\n{script}\n"
        'tell("stop", [value("$_rank"), value("twin")])\ngdb.execute("continue")\n'
        'tell("end", gdb.selected_inferior().pid)',
        "--args",
        rankrun,
        "-n",
        RANKS,
        twins.job,
    )
    assert (told["answers"], told["stop"], told["end"]) == ("reached", [60, 160], 0)
