"""What names mean before and after the life of ranks, as GDB answers of one process that does the same (paces.c)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.breakpoint_walk import RANKS, Programs
from tests.support.gdb.places import compile_program
from tests.support.gdb.session import Session

ASKED = (
    *("print paced", "print &paced", "list pace_up", "ptype pace_about", "info line pace_down", "info scope walk"),
    *("whatis sink", "break pace_down", "print pace_up", "print no_such_name"),
)
# Functions and variables inside the runtime's library, and what its files call theirs.
INSIDE = ("make", "first", "order", "help", "element", "add", "enter", "program_of")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs.build(tmp_path_factory.mktemp("paces"))


def answers(session: Session, programs: Programs, rankrun: Path, script: str) -> list[object]:
    """What the script tells of `answers`, of the process and of the job."""
    found: list[object] = []
    for is_job in (False, True):
        words = [rankrun, "-n", RANKS, programs.job] if is_job else [programs.alone]
        told = session.run(script, "--args", *words, "1", source=is_job)
        assert "ranklens failed" not in told.output and "warning:" not in told.output, told.output
        found.append(told["answers"])
    return found


def test_symbols_stay_after_the_end(session: Session, programs: Programs, rankrun: Path) -> None:
    script = f"""
import re
answers = []
for end in ("kill", "detach", "continue"):
    gdb.execute("tbreak pace_up")
    gdb.execute("run")
    answers.append(functions()[0])
    gdb.execute(end)
    answers += [re.sub("0x[0-9a-f]+", "ADDRESS", ask(command)) for command in {ASKED}]
    answers.append(gdb.breakpoints()[-1].pending)
    gdb.execute("run")
    answers.append(functions()[0])
    gdb.execute("delete")
    gdb.execute("kill")
tell("answers", answers)
"""
    alone, job = answers(session, programs, rankrun, script)
    assert alone == job
    assert "error" not in str(alone).replace('error: No symbol "no_such_name" in current context.', "")


@pytest.mark.parametrize("is_stripped", [False, True], ids=["build-id", "no-build-id"])
def test_a_launcher_of_the_program_s_name(session: Session, rankrun: Path, tmp_path: Path, is_stripped: bool) -> None:
    """It is not the program: no breakpoint of the program's is written into its code as the job is run again."""
    program = compile_program("rankcc", tmp_path, "ticks.c", "-DOWN=__thread")
    launcher = tmp_path / "launchers" / "bin" / program.name
    launcher.parent.mkdir(parents=True)
    (tmp_path / "launchers" / "lib").symlink_to(rankrun.resolve().parent.parent / "lib")
    removed = ["--remove-section=.note.gnu.build-id"] if is_stripped else []
    subprocess.run(["objcopy", *removed, str(rankrun.resolve()), str(launcher)], check=True, timeout=60)
    told = session.run(
        """
gdb.execute("tbreak main")
gdb.execute("run")
gdb.execute("delete")
gdb.execute("break tick")
tell("program", gdb.current_progspace().filename)
tell("mapped", [int(line.split("-")[0], 16) for line in open("/proc/%d/maps" % gdb.selected_inferior().pid)
                if "launchers/bin" in line])
tell("listed", ask("info breakpoints"))
gdb.execute("run")
stops = []
while gdb.selected_inferior().pid and len(stops) < 50:
    stops.append([gdb.newest_frame().name(), value("$_rank"), value("ticks")])
    gdb.execute("continue")
tell("stops", stops)
""",
        "--args",
        launcher,
        "-n",
        RANKS,
        "--method",
        "fs",
        program,
        2,
    )
    assert told["program"] == str(launcher)
    places = [int(place, 16) for place in re.findall(r"0x[0-9a-f]+", told["listed"])]
    assert places and not any(min(told["mapped"]) <= place < max(told["mapped"]) for place in places), told["listed"]
    assert sorted(told["stops"]) == sorted(["tick", rank, turn] for rank in range(RANKS) for turn in (0, 1)), (
        told.output
    )


SCRIPT = """
import gdb
class Loud:
    def __init__(self, value):
        self._value = value
    def to_string(self):
        return f"loud {int(self._value['letter'])}"
def loud(value):
    return Loud(value) if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT else None
gdb.current_objfile().pretty_printers.append(loud)
gdb.current_objfile().mark = "mine"
"""


def test_what_a_program_s_script_attaches(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """PROGRAM-gdb.py runs once in each run; its printers are there in every rank that symbols move to."""
    program = compile_program("rankcc", tmp_path, "ticks.c")
    (tmp_path / "ticks-gdb.py").write_text(SCRIPT)
    told = session.run(
        f"""
gdb.execute("add-auto-load-safe-path {tmp_path}")
gdb.execute("break tick")
shown = []
for _ in range(2):
    gdb.execute("run")
    for _ in range({RANKS}):
        marks = [objfile.mark for objfile in gdb.objfiles() if hasattr(objfile, "mark")]
        shown.append([value("$_rank"), ask("output mixed"), marks])
        gdb.execute("continue")
tell("shown", shown)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
        1,
    )
    assert sorted(told["shown"]) == sorted(2 * [[rank, "loud 120", ["mine"]] for rank in range(RANKS)]), told.output


def test_another_program_after_the_end(session: Session, programs: Programs, rankrun: Path) -> None:
    """Symbols of the last job's program do not stay beside those of a new one."""
    told = session.run(
        f"""
gdb.execute("tbreak pace_up")
gdb.execute("run")
gdb.execute("kill")
gdb.execute("file {programs.alone}")
tell("break", ask("break pace_down"))
gdb.execute("run 1")
tell("stop", functions())
""",
        "--args",
        *(rankrun, "-n", RANKS, programs.job, "1"),
    )
    assert "locations" not in told["break"] and told["stop"] == ["pace_down", "walk", "main"]


def test_the_runtime_s_own_names_do_not_answer(session: Session, programs: Programs, rankrun: Path) -> None:
    script = f"""
gdb.execute("tbreak pace_up")
gdb.execute("run")
answers = [[ask("print &" + name), ask("info line " + name)] for name in {INSIDE}]
gdb.execute("set breakpoint pending off")
answers.append([ask("break " + name) for name in {INSIDE}])
tell("answers", answers)
"""
    alone, job = answers(session, programs, rankrun, script)
    assert alone == job
    assert re.search(r'No symbol "make" in current context', str(alone))


SYMBOLS = (
    *(
        "pace_up",
        "main",
        "$pc",
        "&paced",
        "(long) pace_up + 3",
        "(char *) &paced + 1",
        "&sink",
        "printf",
        "0",
        "no_such",
    ),
    *("", "(long) $pc +", "$_siginfo"),
)


def test_symbols_are_of_the_users_file(session: Session, programs: Programs, rankrun: Path) -> None:
    """`info symbol` in a rank says what it says in a process: the file is the program, not a copy of it for GDB."""
    script = f"""
gdb.execute("tbreak pace_up")
gdb.execute("run")
gdb.execute("tbreak pace_up")
answers = [[one, ask("info symbol " + one)] for one in {SYMBOLS}]
tell("answers", answers)
"""
    alone, job = answers(session, programs, rankrun, script)
    assert str(programs.alone) in str(alone)
    assert str(alone).replace(str(programs.alone), str(programs.job)) == str(job)


@pytest.mark.parametrize("start", ["run", "starti"])
def test_libraries_are_not_to_be_read(session: Session, programs: Programs, rankrun: Path, start: str) -> None:
    """The program is a library in a job: breakpoints stop in it all the same, again and again."""
    script = f"""
answers = []
gdb.execute("set auto-solib-add off")
gdb.execute("tbreak pace_up")
for _ in range(2):
    gdb.execute({start!r})
    if {start!r} == "starti":
        gdb.execute("continue")
    gdb.execute("nosharedlibrary")
    answers += [functions()[0], ask("print paced"), ask("show auto-solib-add")]
    gdb.execute("tbreak pace_down")
    gdb.execute("continue")
    answers += [functions()[0], ask("print sink")]
    gdb.execute("tbreak pace_up")
tell("answers", answers)
"""
    alone, job = answers(session, programs, rankrun, script)
    assert alone == job and "off" in str(alone)
