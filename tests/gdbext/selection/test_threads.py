"""Symbols go with GDB's thread: to the one that is selected, also of a core file, and back when another has stopped.

Under `set non-stop on` threads stop one by one, and GDB stays with the user's.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.gdb.places import compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.gdb.terminal import PROMPT, terminal

TWO_HITS = rb"(?s)hit Breakpoint 1.*hit Breakpoint 1.*ticks \+= 1;"


def test_the_rank_of_the_users_thread_stays(gdb: Path, rankrun: Path, tmp_path: Path) -> None:
    ticks = compile_program("rankcc", tmp_path, "ticks.c")
    words = ["-ex", "set non-stop on", "-ex", f"source {EXTENSION}", "--args", rankrun, "-n", 4, "--pes", 2, ticks, 2]
    with terminal(gdb, *words) as user:
        user.wait_for(PROMPT)
        user.ask("break tick")
        user.type("run\n")
        user.wait_for(TWO_HITS)  # of a rank of each processing element
        user.wait_for_idle()
        ranks = []
        for thread in (None, 1, 2, 1):
            said = user.ask(f"thread {thread}") if thread is not None else ""
            rank = number(user.ask("print rank"))  # an argument of the function where the thread has stopped
            assert number(user.ask("print $_rank")) == rank
            assert user.ask("print level").endswith(f"= {rank}.25\r\n(gdb) ")
            assert re.search(rf"#0 +tick \(rank={rank}\)", user.ask("bt 1"))
            ranks.append(rank)
            assert thread is None or tells(said, rank)
        assert ranks[0] in ranks[1:] and ranks[1] == ranks[3] != ranks[2]
        core = tmp_path / "core"
        user.ask(f"gcore {core}")
        user.ask("kill")
        said = user.ask(f"core-file {core}")
        assert tells(said, number(user.ask("print rank")))


def tells(said: str, rank: int) -> bool:
    """Whether the frame is told with its name: when GDB tells another rank's, it has no symbols of it yet."""
    return re.search(rf"#0 +tick \(rank={rank}\)", said) is not None


def number(said: str) -> int:
    match = re.search(r"= (\d+)\r\n", said)
    assert match is not None, said
    return int(match[1])


def test_a_script_in_non_stop_mode(gdb: Path, rankrun: Path, tmp_path: Path) -> None:
    """GDB stays with the first thread, which runs; and at its end it crashes over what it has not carried out yet."""
    ticks = compile_program("rankcc", tmp_path, "ticks.c")
    asked = ["set non-stop on", "break tick if rank == 2", "run", "rank bt", "rank print rank 2", "kill"]
    settings = ["set debuginfod enabled off", "set startup-with-shell off", "set breakpoint pending on"]
    command = [str(gdb), "-nx", "-q", "-batch"]
    command += [word for setting in settings for word in ("-iex", setting)]
    command += [word for one in [f"source {EXTENSION}", *asked] for word in ("-ex", one)]
    command += ["--args", str(rankrun), "-n", "4", "--pes", "2", str(ticks), "1000000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Rank 2, running .*\n#0 +tick \(rank=2\)", done.stdout), done.stdout + done.stderr
    assert "\n2: 2\n" in done.stdout, done.stdout + done.stderr


def test_a_thread_at_a_call_of_an_inlined_function(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """GDB keeps the inlined function's symbol for it, and uses it although its file is gone."""
    # Ubuntu's gcc begins functions with endbr64, for which there would be a line of its own.
    program = compile_program("rankcxx", tmp_path, "inlined.cpp", "-O1", "-fcf-protection=none")
    script = """
gdb.execute("break work")
gdb.execute("run")
gdb.execute("next")
tell("before", [functions()[0], gdb.newest_frame().find_sal().line, value("$pc")])
other = 1 - value("$_rank")
gdb.execute(f"rank {other}")
ask("info threads")
gdb.execute("rank none")
ask("info threads")
ask("bt")
gdb.execute(f"rank {1 - other}")
tell("after", [*functions()[:2], gdb.newest_frame().older().find_sal().line, value("$pc")])
ask("kill")
"""
    answers = session.run(script, "--args", rankrun, "-n", 2, program)
    function, line, pc = answers["before"]
    assert function == "work" and answers["after"] == ["twice", "work", line, pc], answers.output
    assert "$pc is unchanged" not in answers.output
