"""Targets that die, vanish or lie: one sentence each, and GDB goes on as before."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, SOURCES, Places, hold
from tests.support.gdb.session import EXTENSION, Session
from tests.support.gdb.terminal import PROMPT, terminal
from tests.support.running import ROOT, StartJob

COMMANDS = ("rank list", "rank 1", "rank bt", "rank tree", "rank print shared_name", "rank find 3", "rank info 0", "bt")
AFTERWARDS = """
tell("answers", {command: ask(command) for command in COMMANDS})
tell("alive", [ask("print 6 * 7"), ask("help rank list")[:4]])
"""


def check(told: dict[str, str], sentence: str) -> None:
    for command, answer in told.items():
        if command != "bt":
            assert sentence in answer and answer.startswith("error: "), f"{command}: {answer}"
            assert answer.count("\n") <= 1


def test_no_program(session: Session) -> None:
    answers = session.run(f"COMMANDS = {COMMANDS}\n{AFTERWARDS}")
    check(answers["answers"], "there is no process")
    assert answers["alive"][0].endswith("= 42\n") and "Traceback" not in answers.output


def test_a_program_without_ranks(session: Session) -> None:
    script = f'gdb.execute("break main")\ngdb.execute("run")\nCOMMANDS = {COMMANDS}\n{AFTERWARDS}'
    answers = session.run(script, "/bin/true")
    check(answers["answers"], "")
    assert answers["alive"][0].endswith("= 42\n") and "Traceback" not in answers.output


def test_killed_under_the_debugger(session: Session, places: Places) -> None:
    answers = session.attach(
        f"""
import os, signal
gdb.execute("rank 1")
os.kill({places.pid}, signal.SIGKILL)
COMMANDS = {COMMANDS}
tell("meanwhile", {{command: ask(command) for command in COMMANDS}})
tell("continued", ask("continue"))
{AFTERWARDS}
""",
        places.pid,
    )
    check(answers["answers"], "there is no process")
    assert answers["alive"][0].endswith("= 42\n") and "Traceback" not in answers.output


@pytest.mark.parametrize("command", ["continue", "next"])
def test_a_breakpoint_that_gdb_cannot_insert(gdb: Path, places: Places, command: str) -> None:
    """GDB says that the target runs, and then that it could not let it: the rank on the thread is looked at again."""
    with terminal(gdb, "-p", places.pid, "-ex", f"source {EXTENSION}") as user:
        user.wait_for(PROMPT)
        user.ask("frame function spin")
        asked = ("rank", "bt", "output shared_name", "output $_rank", "rank list")
        before = [user.ask(one) for one in asked]
        user.ask("break *0x10")
        if command == "continue":
            user.ask("rank 1")
        said = user.ask(command)
        assert "Cannot insert breakpoint 1" in said and "Command aborted" in said
        assert (f"[Rank {RANKS - 1} runs here]" in said) == (command == "continue"), said
        assert [user.ask(one) for one in asked] == before
        assert "rank 1" in user.ask("rank 1") and user.ask("output $_rank").startswith("1")


def test_killed_while_gdb_attaches(gdb: Path, places: Places) -> None:
    """It has no registers when the extension comes: one sentence, and once it is gone the extension is there."""
    kill = "lambda event: gdb.selected_inferior().pid and os.kill(gdb.selected_inferior().pid, 9)"
    command = [str(gdb), "-nx", "-q", "-batch", "-iex", f"python import os; gdb.events.new_objfile.connect({kill})"]
    source = f"source {EXTENSION}"
    for one in (source, "detach", source, "rank list"):
        command += ["-ex", one]
    done = subprocess.run(
        [*command, "-p", str(places.pid)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said and ": Couldn't get registers: No such process" in said, said
    assert "there is no process and no core file" in said, said


def test_killed_in_the_middle_of_a_command(session: Session, places: Places) -> None:
    """What could not be read is neither a damaged record nor a value that no global has."""
    answers = session.attach(
        f"""
import os, signal

class KillOnce(gdb.Command):
    def __init__(self):
        super().__init__("kill-once", gdb.COMMAND_DATA)
        self.calls = 0

    def invoke(self, argument, from_tty):
        self.calls += 1
        if self.calls == 2:
            os.kill({places.pid}, signal.SIGKILL)
            while open("/proc/{places.pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
                pass

kill_once = KillOnce()
tell("apply", ask("rank apply all kill-once"))
tell("calls", kill_once.calls)
asked = ["rank list", "rank print shared_name", "rank diff shared_name", "rank bt all", "rank tree", "rank find 3"]
tell("answers", {{command: ask(command) for command in asked}})
tell("print", ask("print 40 + 2"))
ask("kill")
tell("after", [ask("rank list"), ask("print 40 + 2")])
""",
        places.pid,
    )
    ended = f"process {places.pid} has ended"
    assert ended in answers["apply"] and answers["calls"] == 2, answers["apply"]
    for command, answer in answers["answers"].items():
        assert answer.count(ended) == 1 and len(answer.splitlines()) == 1, (command, answer)
    assert answers["print"].endswith("= 42\n")
    assert "there is no process" in answers["after"][0] and answers["after"][1].endswith("= 42\n")
    assert "Traceback" not in answers.output


@pytest.mark.parametrize(
    ("offset", "value", "sentence"),
    [
        (0, 0x1122334455667788, "registry"),  # the magic
        (8, 99, "version"),
        (16, 7, "half of that change"),  # a generation that is odd: the writer was stopped in the middle
    ],
)
def test_a_registry_that_lies(session: Session, places: Places, offset: int, value: int, sentence: str) -> None:
    """Overwritten as a wild pointer would; put right again, everything is as before."""
    answers = session.attach(
        f"""
place = next(line.split("-")[0] for line in open("/proc/{places.pid}/maps") if "rank_debug_registry" in line)
word = f"*(unsigned long *)(0x{{place}} + {offset})"
before = value("(unsigned long)" + word)
gdb.execute("set var " + word + " = {value}")
gdb.execute("python from gdbext import extension; extension._extension.debugger.state().moment = None")
tell("wrong", ask("rank list"))
gdb.execute("set var " + word + f" = {{before}}")
gdb.execute("python extension._extension.debugger.state().moment = None")
tell("right", ask("rank list"))
""",
        places.pid,
    )
    assert sentence in answers["wrong"] and "Traceback" not in answers.output
    assert "MPI_Recv" in answers["right"] and sentence not in answers["right"]


def test_an_exited_rank(session: Session, rankrun: Path, program: Path) -> None:
    """Its globals are still there, its stack is not: asked while the next one ends."""
    answers = session.run(
        """
gdb.execute("break rank_debug_event if $rdi == 6")
gdb.execute("run")
ended = value("$rsi")
gdb.execute("continue")
tell("ranks", [ended, value("$rsi")])
tell("selected", value("$_rank"))
tell("answers", [ask(f"{command} {ended}") for command in ("rank print shared_name", "rank bt", "rank", "rank list")])
""",
        "--args",
        rankrun,
        "-n",
        4,
        program,
        "end",
    )
    ended, ending = answers["ranks"]
    value, stack, selected, row = answers["answers"]
    assert answers["selected"] == ending != ended
    assert value == f"{ended}: {10 + ended}\n", answers.output
    assert stack == selected == f"error: rank {ended} has exited: its globals are still there: rank print EXPR {ended}"
    assert row.splitlines()[1].split()[:2] == [str(ended), "exited"], row
    assert "Traceback" not in answers.output


def test_a_path_that_is_no_text(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    """GDB's Python has no string for such a file's name."""
    odd = tmp_path / os.fsdecode(b"\xff") / program.name
    odd.parent.mkdir()
    shutil.copy(program, odd)
    places = hold(start_job(rankrun, "-n", RANKS, odd))
    answers = session.attach(
        """
tell("list", ask("rank list"))
tell("runs", [value("$_rank"), value("shared_name")])
gdb.execute("rank 1")
tell("waits", [value("$_rank"), value("shared_name"), value("$_rankaddr(\\"shared_name\\", 2)")])
tell("bt", ask("bt"))
""",
        places.pid,
    )
    last = RANKS - 1
    assert answers["list"].count("blocked") == last
    assert answers["runs"] == [last, places.owned[last, "shared_name"].value]
    assert answers["waits"] == [1, places.owned[1, "shared_name"].value, places.owned[2, "shared_name"].address]
    assert "wait_for (peer=2) at" in answers["bt"]
    assert "Traceback" not in answers.output and "ranklens failed" not in answers.output


def test_names_that_are_not_utf8(gdb: Path, start_job: StartJob, rankrun: Path, rankcc: Path, tmp_path: Path) -> None:
    """Of the program and of its source: GDB hands neither of them to Python."""
    source, program = (tmp_path / os.fsdecode(name) for name in (b"pl\xe9.c", b"pl\xe9"))
    shutil.copy(SOURCES / "places.c", source)
    subprocess.run([rankcc, "-g", "-O0", source, "-o", program], check=True, timeout=120)
    job = start_job(rankrun, "-n", "2", program)
    job.wait_for("ready")
    words = ["-ex", f"source {ROOT}/gdbext/rank.py", "-ex", "rank 1", "-ex", "bt", "-ex", "print shared_name"]
    command = [str(gdb), "-nx", "-q", "-batch", "-p", str(job.pid), *words]
    done = subprocess.run(command, capture_output=True, timeout=120)
    shown = done.stdout.decode("utf-8", "backslashreplace")
    assert "Exception" not in shown and "\n$1 = 11\n" in shown, shown
    assert re.search(r" main \(.*\) at \S*pl\\xe9\.c:\d+\n", shown), shown
