"""However GDB comes to the job, ranks are there: a stub, both kinds of core files, the middle of start-up, a launch."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gdbext.symbols.test_sight import VALUES, check
from tests.support.gdb.places import RANKS, Places, compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.running import ROOT, StartJob
from tests.support.waiting import wait_until

CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")


def test_behind_a_stub(session: Session, places: Places) -> None:
    """Memory comes through the stub alone: the connection is all that GDB is told of the process."""
    answers = session.run(
        f"""
gdb.execute("target remote | gdbserver --once --attach - {places.pid}")
tell("kind", gdb.selected_inferior().connection.type)
tell("list", ask("rank list"))
{VALUES}
"""
    )
    assert answers["kind"] == "remote"
    assert answers["list"].count("MPI_Recv") == RANKS - 1, answers["list"]
    check(answers["answers"], places)


def test_launched_by_a_stub(session: Session, rankrun: Path, program: Path) -> None:
    answers = session.run(
        f"""
gdb.execute("target remote | gdbserver --once - {rankrun} -n {RANKS} {program} end")
gdb.execute("break work")
found = []
while gdb.selected_inferior().pid and len(found) < 2 * {RANKS}:
    gdb.execute("continue")
    if gdb.selected_inferior().pid:
        found.append([value("$_rank"), gdb.newest_frame().name()])
tell("stops", found)
"""
    )
    assert sorted(answers["stops"]) == [[rank, "work"] for rank in range(RANKS)], answers.output


def test_a_core_of_the_kernel(session: Session, start_job: StartJob, rankrun: Path, program: Path) -> None:
    if CORE_PATTERN.read_text().strip() != "core":
        pytest.skip(f"core files of this machine go to {CORE_PATTERN.read_text().strip()!r}")
    core_size = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (core_size[1], core_size[1]))
    try:
        job = start_job("sh", "-c", 'cd "$0" && exec "$@"', session.folder, rankrun, "-n", RANKS, program)
        job.wait_for("ready")
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, core_size)
    from tests.support.gdb.places import parse_owned

    places = Places(job.pid, parse_owned(job.lines))
    job.process.send_signal(signal.SIGSEGV)
    job.finish()
    cores = sorted(session.folder.glob("core*"))
    if not cores:
        pytest.skip("this machine writes no core files")
    answers = session.run(VALUES, rankrun.resolve(), cores[0])
    check(answers["answers"], places)


@pytest.mark.parametrize("is_told", [False, True], ids=["no program", "what rankcc made"])
def test_a_core_file_whose_program_gdb_is_not_told(
    session: Session, core: Path, places: Places, program: Path, is_told: bool
) -> None:
    """The process's program is rankrun. GDB has the names of what it is told at 0, before every rank's."""
    answers = session.run(f'tell("list", ask("rank list"))\n{VALUES}', *([program] if is_told else []), "-c", core)
    assert answers["list"].count("MPI_Recv") == RANKS - 1 and "told the program" not in answers.output, answers.output
    check(answers["answers"], places)


def test_a_core_file_whose_program_is_nowhere(session: Session, core: Path, rankrun: Path, tmp_path: Path) -> None:
    """GDB before 18 reads no library's symbols then, and has wrong stacks."""
    program = str(rankrun.resolve()).encode()
    moved = tmp_path / "moved.core"
    moved.write_bytes(core.read_bytes().replace(program, b"/" + b"x" * (len(program) - 1)))
    script = f'gdb.execute("core-file {moved}")\nfor rank in 1, 2:\n    tell(rank, [ask(f"rank {{rank}}"), ask("bt")])'
    answers = session.run(script)
    warning = "warning: GDB does not know the program, and stacks are wrong without it: `file PROGRAM`"
    are_right = [f"stay (rank={rank}, size={RANKS})" in answers[str(rank)][1] for rank in (1, 2)]
    assert are_right in ([False, False], [True, True]), answers.output
    assert [warning in answers[rank][0] for rank in "12"] == [not are_right[0], False], answers.output


def test_gdb_is_ended_while_the_job_runs(session: Session, places: Places) -> None:
    """GDB 13 aborts at SIGTERM if an object of a connection outlives its Python."""
    script = session.folder / "go.gdb"
    script.write_text(f"source {EXTENSION}\nrank list\nbreak deeper\necho goes on\\n\ncontinue\n")
    command = [str(session.gdb), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(places.pid)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(session.folder)}
    with subprocess.Popen(
        [*command, "-x", str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        said = ""
        while "goes on" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        state = Path(f"/proc/{places.pid}/stat")
        wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] in "RS", "the job never went on")
        process.terminate()
        said += process.stdout.read()
    assert "internal-error" not in said and process.returncode != -signal.SIGABRT, said


@pytest.mark.parametrize("stop", [1, 3, 5], ids=["before copies", "after copies", "a rank created"])
def test_while_ranks_are_made(session: Session, rankrun: Path, program: Path, stop: int) -> None:
    """The extension comes when some ranks are there and some are not; breakpoints still hit in every one."""
    answers = session.run(
        f"""
gdb.execute("break rank_debug_event")
gdb.execute("run")
for turn in range({stop} - 1):
    gdb.execute("continue")
gdb.execute("delete")
gdb.execute("source {EXTENSION}")
tell("list", ask("rank list"))
gdb.execute("break work")
found = []
while gdb.selected_inferior().pid and len(found) < 2 * {RANKS}:
    gdb.execute("continue")
    if gdb.selected_inferior().pid:
        found.append([value("$_rank"), gdb.newest_frame().name()])
tell("stops", found)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
        "end",
        source=False,
    )
    assert "Traceback" not in answers.output
    assert sorted(answers["stops"]) == [[rank, "work"] for rank in range(RANKS)], answers.output


def test_the_path_to_source(session: Session, places: Places) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gdbext"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    answers = session.run(f'gdb.execute("source {done.stdout.strip()}")\n{VALUES}', "-p", places.pid, source=False)
    check(answers["answers"], places)


def test_a_debugger_that_never_left_finds_the_next_run(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """`run` twice, with the program built anew in between."""
    program = compile_program("rankcc", tmp_path, "places.c")
    answers = session.run(
        f"""
gdb.execute("break work")
found = []
for turn in range(2):
    gdb.execute("run")
    for stop in range({RANKS}):
        found.append([turn, value("$_rank"), gdb.newest_frame().name()])
        gdb.execute("continue")
tell("stops", found)
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        program,
        "end",
    )
    assert sorted(answers["stops"]) == [[turn, rank, "work"] for turn in range(2) for rank in range(RANKS)]


def test_found_by_gdb_itself(session: Session, places: Places) -> None:
    """Beside the library lies a script that GDB runs, where its user trusts the folder."""
    allowed = ("-iex", f"add-auto-load-safe-path {ROOT}")
    answers = session.run(VALUES, *allowed, "-p", places.pid, source=False)
    check(answers["answers"], places)
