"""Where a rank is, is a line of the user's, though a template of the C++ library runs there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.inspector.ranks import SOURCES
from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

SOURCE = SOURCES / "rests.cpp"
RANKS = 3
SLEEP = ("230", "115")  # clock_nanosleep on x86-64, on AArch64


def sleeps(pid: int) -> bool:
    """Whether a thread of the process is in clock_nanosleep(2)."""
    return any(calls.read_text().split()[0] in SLEEP for calls in Path(f"/proc/{pid}/task").glob("*/syscall"))


@pytest.mark.parametrize("optimization", ["-O0", "-O2"])
def test_the_users_line_is_shown(
    optimization: str,
    session: Session,
    tmp_path: Path,
    shared: Shared,
    rankcxx: Path,
    rankrun: Path,
    start_job: StartJob,
) -> None:
    program = shared.copied([rankcxx, "-g", optimization, SOURCE], tmp_path / "rests.so")
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("rests")
    wait_until(lambda: sleeps(job.pid), "the last rank sleeps")
    commands = ["rank list", f"rank print own_rank {RANKS - 1}", "rank print hours 2", "rank bt 2"]
    answers = session.attach(f"tell('answers', [ask(command) for command in {commands!r}])\n", job.pid)["answers"]
    listed, own, hours, backtrace = answers
    line = next(number for number, text in enumerate(SOURCE.read_text().splitlines(), 1) if "/* rests */" in text)
    assert f"rest at rests.cpp:{line}" in listed.splitlines()[RANKS]
    assert own == "2: 2\n"
    assert "sleep_for" in backtrace  # what runs there is not hidden
    if optimization == "-O0":
        assert hours == "2: 3\n"
