"""The host: answers come back whole, failures are told, and nothing is left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.host.controller import Controller, DebuggerFailedError, Gdb, end_job
from tests.support.host.meeting import Meeting
from tests.support.host.plan import Answer, Answers, Plan, Query, at, save_answers

STOP = ("break main", "run")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    source = folder / "small.c"
    source.write_text("static int value = 5;\nint main(int argc, char **argv) {\n    return value + argc + !argv;\n}\n")
    executable = folder / "small"
    subprocess.run(["cc", "-g", str(source), "-o", str(executable)], check=True, timeout=60)
    return executable


def test_every_process_answers(tmp_path: Path, gdb: Path, program: Path) -> None:
    queries = (*at("main", "print argc", "print value"), *at("", "print no_such_name"), *at("absent", "print 1"))
    answers = Controller(Gdb(gdb), tmp_path).native([str(program), "word"], 2, Plan(STOP, queries))
    assert answers.ranks == {0, 1}
    for rank in answers.ranks:
        assert answers.text(rank, queries[0]) == "$1 = 2\n"
        assert answers.text(rank, queries[1]) == "$2 = 5\n"
        assert answers.text(rank, queries[2]) == 'error: No symbol "no_such_name" in current context.'
        assert answers.text(rank, queries[3]).startswith("error: no frame of absent")


def test_a_debugger_that_fails_is_told_with_its_words(tmp_path: Path, gdb: Path, program: Path) -> None:
    with pytest.raises(DebuggerFailedError, match="no_such_command"):
        Controller(Gdb(gdb), tmp_path).native([str(program)], 2, Plan(("no_such_command",), ()))


def test_attaching_to_nothing_is_told(tmp_path: Path, gdb: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(DebuggerFailedError):
        Controller(Gdb(gdb), tmp_path).attached(ended.pid, Plan((), at("", "bt"), ranks=(0,)))


def test_a_meeting_ends_when_nobody_is_left_to_come() -> None:
    with Meeting() as meeting:
        assert not meeting.wait_for(1, alive=lambda: False, timeout=60)


def test_a_job_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.host.controller.GRACE", 0.1)
    job = subprocess.Popen([shutil.which("cat") or "cat"], stdin=subprocess.PIPE, start_new_session=True)
    end_job(job)
    assert job.returncode == -signal.SIGTERM
    assert job.stdin is not None
    job.stdin.close()
    with pytest.raises(ProcessLookupError):
        os.kill(job.pid, 0)


def test_answers_survive_their_file(tmp_path: Path) -> None:
    answer = Answer(3, Query("main", "print x"), "$1 = \x1b\udcff\n")
    save_answers(tmp_path, 3, [answer])
    assert Answers.load(tmp_path).text(3, answer.query) == answer.text
