"""The commands' answers in LLDB: against GDB's on the same stopped job, and to bad input."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pieglobalsfind.debugger.commands import COMMANDS
from tests.support.gdb.places import RANKS, Places, compile_program
from tests.support.gdb.session import Session as GdbSession
from tests.support.lldb.session import EXTENSION, Session
from tests.support.running import ROOT, StartJob

SAME = (
    "rank list",
    "rank list blocked",
    "rank list 0-3 --state running",
    "rank",
    "rank bt all",
    "rank bt 0,2",
    "rank bt 3 full",
    "rank bt 1 full",
    "rank tree",
    "rank find 21",
    "rank find 12 0-2",
    "rank info 1",
    "rank print shared_name",
    "rank print shared_name 0-1,3",
    "rank print 1-2 *pointer",
    "rank print pair",
    "rank print &pair 2",
    "rank print pointer",
    "rank print &table[2] 3",
    "rank print table",
    "rank print /x pair.second 3",
    "rank print /x table",
    "rank print /d shared_name",
    "rank print file_static + 1",
    "rank print running rank",
    "rank print /stay|wait_for/ peer",
    "rank print no_such_name",
    "rank diff constant",
    "rank diff shared_name == 12",
    "rank diff no_such_name",
    "rank where file_static",
    "rank where shared_name",
    "pieglobalsfind &pair.second",
    "pieglobalsfind move_on",
    "pieglobalsfind 0x10",
    "rank 2",
    "rank",
    "rank info",
    "pieglobalsfind shared_name",
    "rank backtrace 1",
    "rank tree 0-1",
    "rank diff /x shared_name",
    "rank diff shared_name 1-2",
    "rank info 2",
    "rank apply 1-2 rank where shared_name",
    "rank apply 0-1 -q pieglobalsfind &pair.second",
    "rank apply all pieglobalsfind shared_name",
    "rank apply 1 rank bt 1 full",
    "rank",
    "rank 3",
    "rank none",
    "rank",
    "rank print shared_name",
)


def normalized(answer: str) -> str:
    """Without the frames inside the MPI library, the frames' numbers, and the folder of a source file.

    GDB gives a suspended rank's frames numbers from 1, and knows another inner frame for the same pc where a file has
    no line information. Between two debuggers the last rank goes on spinning. Without a rank each shows what it can.
    """
    lines = []
    for line in re.sub(r"stopped thread \d+", "stopped thread", answer).splitlines():
        if re.match(r"#\d+ ", line):
            if ".so" in line:
                continue
            line = re.sub(r"#\d+ +", "# ", line)
            line = re.sub(r"# (?:0x[0-9a-f]+ in )?(spin .*):4[23]$", r"# \1", line)
        line = re.sub(r"(No rank is selected: )frames .*", r"\1", line)
        line = re.sub(r"(turns = |spin at places.c:)\d+", r"\1", line)
        lines.append(re.sub(r"\S*/(\w+\.c:)", r"\1", line))
    return "\n".join(lines)


ANSWERS = f"tell('answers', [ask(command) for command in {list(SAME)!r}])\n"


def compare(session: Session, gdb: GdbSession, lldb_arguments: list[object], gdb_arguments: list[object]) -> None:
    answers = session.run(ANSWERS, *lldb_arguments)
    mine = [normalized(answer) for answer in answers["answers"]]
    other = [normalized(answer) for answer in gdb.run(ANSWERS, *gdb_arguments)["answers"]]
    for command, lldbs, gdbs in zip(SAME, mine, other):
        assert lldbs == gdbs, f"{command}:\nLLDB:\n{lldbs}\nGDB:\n{gdbs}\n{answers.output}"
    assert "Traceback" not in answers.output


def test_an_old_lldb_answers_alike(session: Session, places: Places, tmp_path: Path) -> None:
    """LLDB 14, which says what it can't do."""
    old = shutil.which("lldb-14")
    if old is None:
        pytest.skip("there is no lldb-14: Debian does not let it stand beside lldb-19")
    answers = Session(Path(old), tmp_path).attach(ANSWERS, places.pid)
    new = session.attach(ANSWERS, places.pid)
    assert "ranklens: in LLDB 14 `p` may not come back" in answers.output
    assert "ranklens: in LLDB 14 names follow `rank N`, not `thread select`" in answers.output
    for command, mine, other in zip(SAME, answers["answers"], new["answers"]):
        assert normalized(mine) == normalized(other), f"{command}: {answers.output}"


@pytest.fixture
def gdb_session(gdb: Path, tmp_path: Path) -> GdbSession:
    (tmp_path / "gdb").mkdir()
    return GdbSession(gdb, tmp_path / "gdb")


def test_both_debuggers_answer_alike_live(session: Session, gdb_session: GdbSession, places: Places) -> None:
    compare(session, gdb_session, ["-p", places.pid], ["-p", places.pid])


def test_functions_of_c_in_a_cxx_program_have_their_names(
    session: Session, gdb_session: GdbSession, start_job: StartJob, rankrun: Path, tmp_path: Path
) -> None:
    """LLDB puts `::` before them where it has read their DIEs, and may not have read those of every rank's module."""
    job = start_job(rankrun, "-n", RANKS, compile_program("rankcxx", tmp_path, "linkage.cpp"))
    job.wait_for("ready")
    script = "tell('answers', [re.sub(r':[0-9,]+', '', ask(command)) for command in ('rank tree', 'rank list')])\n"
    mine, other = (one.attach("import re\n" + script, job.pid)["answers"] for one in (session, gdb_session))
    assert mine == other and re.search(r"^stay at linkage.cpp +\[0-3\]$", mine[0], re.MULTILINE)


@pytest.mark.parametrize("by", ["rankrun", "program"])
def test_both_debuggers_answer_alike_in_a_core(
    session: Session, gdb_session: GdbSession, rankrun: Path, program: Path, core: Path, by: str
) -> None:
    """Also where LLDB is given what rankcc made, which is a library to the process, and has no list of others."""
    given = {"rankrun": rankrun.resolve(), "program": program}[by]
    compare(session, gdb_session, [given, "-c", core], [rankrun.resolve(), core])


def test_every_shared_command_is_compared() -> None:
    for command in COMMANDS:
        if command.name == "rank context":  # needs other programs: tests/contexts compares it
            continue
        assert any(
            asked == name or asked.startswith(name + " ") for asked in SAME for name in (command.name, *command.aliases)
        )


BAD = {
    "rank 4": "there is no rank 4: this process has 0-3",
    "rank x": "'x' is neither a rank nor a subcommand",
    "rank -1": "'-1' is neither a rank nor a subcommand",
    "rank 99999999999999999999": "is neither a rank nor a subcommand",
    "rank none 3": "`rank none` takes no arguments",
    "rank watch shared_name 1": "`rank watch` is there in GDB only: select a rank, then: watchpoint set variable NAME",
    "rank tbreak move_on": "`rank tbreak` is there in GDB only: rank break LOCATION SET, then: breakpoint modify",
    "rank events on": "`rank events` is there in GDB only: in a shell: inspector events PID",
    "rank list 3-1": "is not a set of ranks",
    "rank list 0-4000000000": "there is no rank 4",
    "rank list --state asleep": "is not a state",
    "rank bt 5": "there is no rank 5",
    "rank bt /(/": "is not a regular expression",
    "rank info 8": "there is no rank 8",
    "rank print": "no expression to print is given: rank print EXPR",
    "rank diff": "no expression to print is given: rank diff EXPR",
    "rank break move_on 2-7": "there is no rank 7",
    "rank apply": "no ranks and no command",
    "rank apply 1": "no command to apply",
    "rank apply 1 no_such_command": "'no_such_command' is not a valid command",
    "rank where": "no address is given",
    "pieglobalsfind": "no address is given",
    "pieglobalsfind no_such_name": 'No symbol "no_such_name" in current context',
    "pieglobalsfind ((": "expected expression",
}


def test_bad_input_is_answered_in_one_sentence(session: Session, places: Places) -> None:
    script = f"tell('answers', [ask(command) for command in {list(BAD)!r}] + [ask('rank print shared_name 1')])\n"
    answers = session.attach(script, places.pid)
    for (command, expected), answer in zip(BAD.items(), answers["answers"]):
        assert answer.startswith("error: ") and answer.count("\n") == 1, f"{command}: {answer}"
        assert expected in answer, f"{command}: {answer}"
    assert answers["answers"][-1] == "1: 11\n"
    assert "Traceback" not in answers.output


@pytest.mark.parametrize("command", ["rank list", "rank 0", "rank print 1", "pieglobalsfind 0x10", "rank bt"])
def test_without_a_process(session: Session, command: str) -> None:
    answers = session.run(f"tell('answer', ask({command!r}))")
    assert answers["answer"].startswith("error: there is no process and no core file: run the program"), answers.output


def test_nothing_is_told_of_a_process_that_goes_on_alone(session: Session, places: Places) -> None:
    """It runs on after `detach`: what was so at the last stop is not an answer."""
    script = """
    tell("before", ask("rank list"))
    ask("detach")
    tell("answers", [ask(command) for command in ("rank list", "rank", "rank 1", "rank print shared_name", "rank bt")])
    """
    answers = session.attach(script, places.pid)
    assert answers["before"].count("MPI_Recv") == RANKS - 1
    for answer in answers["answers"]:
        assert answer.startswith("error: there is no process and no core file"), answers["answers"]


def test_a_process_without_ranks(session: Session) -> None:
    script = """
    tell("stop", ask("breakpoint set -n main") + ask("process launch"))
    tell("answer", ask("rank list"))
    tell("threads", ask("thread list"))
    kill()
    """
    answers = session.run(script, "/bin/true")
    assert "has no virtual ranks" in answers["answer"] or "no process" in answers["answer"]
    assert "warning" not in answers.output and "Traceback" not in answers.output


def test_what_only_gdb_has_is_documented(session: Session) -> None:
    answers = session.run("tell('help', ask('help rank'))")
    gdbs, lldbs = ((ROOT / "docs" / name).read_text() for name in ("gdb.md", "lldb.md"))
    of_gdb = set(re.findall(r"`(rank [a-z]+)", " ".join(re.findall(r"^\| `rank .*", gdbs, re.MULTILINE))))
    ours = set(re.findall(r"Usage: (rank [a-z]+)", answers["help"]))
    lacking = set(re.findall(r"^\| `(rank [a-z]+)", lldbs, re.MULTILINE))
    assert lacking == of_gdb - ours and {"rank watch", "rank events"} <= lacking


def test_imported_from_any_place_and_twice(session: Session, tmp_path: Path) -> None:
    answers = session.run(f"ask('command script import {EXTENSION}'); tell('help', ask('help rank'))")
    for words in ("frame variable", "frame select", "source list"):
        assert words in answers["help"]
    assert "frame, info locals, print" not in " ".join(answers["help"].split()), "GDB's words"
    assert "Usage: rank list" in answers["help"] and "Usage: rank bt" in answers["help"]
    assert "error" not in answers.output


def test_after_the_process_has_ended(session: Session, start_job: StartJob, rankrun: Path, program: Path) -> None:
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("ready")
    script = """
    tell("before", ask("rank print shared_name 1"))
    kill()
    tell("after", [ask("rank list"), ask("rank 1"), ask("thread list")])
    """
    answers = session.attach(script, job.pid)
    assert answers["before"] == "1: 11\n"
    assert all(answer.startswith("error: ") for answer in answers["after"]), answers["after"]
    assert "Traceback" not in answers.output and "warning: a rank" not in answers.output


def test_a_program_whose_file_is_gone(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    """Symbols are read through the kernel where it allows that; else it is said that there are none."""
    copy = tmp_path / "gone"
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    job = start_job(rankrun, "-n", RANKS, copy)
    job.wait_for("ready")
    copy.unlink()
    answers = session.attach("tell('bt', ask('rank bt 1')); tell('list', ask('rank list'))", job.pid)
    assert "wait_for (peer=2)" in answers["bt"] or "have no symbols of it" in answers.output
    assert len(answers["list"].splitlines()) == RANKS + 1
    assert "Traceback" not in answers.output
