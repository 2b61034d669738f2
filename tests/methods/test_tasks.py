"""GDB and LLDB on ranks that are processes and share memory: no breakpoint kills one that nobody is attached to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.debuggers import find_lldb
from tests.support.gdb.session import Session
from tests.support.lldb.session import Session as Lldb
from tests.support.running import StartJob, built

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int steps;
void take_step(int fd) { char byte; steps++; if (fd >= 0 && read(fd, &byte, 1) < 0) steps = -1; }
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 4; turn++) {
        take_step(turn == 2 && rank == 0 ? 0 : -1);
        if (turn == 1 && rank == 0)
            puts("ready"), fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("rank %d steps %d\\n", rank, steps);
    MPI_Finalize();
    return 0;
}
"""
SCRIPT = """
    tell("break", ask("break take_step"))
    tell("rank break", ask("rank break take_step"))
    tell("runtime", ask("break MPI_Barrier"))
    tell("enabled", [one.enabled for one in gdb.breakpoints() if one.visible])
    tell("all", ask("maint info breakpoints"))
"""


def start(start_job: StartJob, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    (folder / "steps.c").write_text(PROGRAM)
    program = folder / "steps"
    command = [built("rankcc"), "--method=pipprocess", "-g", folder / "steps.c", "-o", program]
    subprocess.run([str(word) for word in command], check=True, timeout=60)
    return held(program), program


def held(program: Path) -> subprocess.Popen[bytes]:
    command = [str(built("rankrun")), "-n", "3", "--method", "pipprocess", str(program)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and b"ready" in process.stdout.readline()
    return process


def finish(process: subprocess.Popen[bytes]) -> list[bytes]:
    """Let rank 0 go on; what all print then."""
    output, _ = process.communicate(b"go", timeout=60)
    assert process.returncode == 0, output
    return sorted(output.splitlines())


WHOLE = [b"rank 0 steps 4", b"rank 1 steps 4", b"rank 2 steps 4"]


def test_breakpoints_are_refused_where_they_would_kill(start_job: StartJob, gdb: Path, tmp_path: Path) -> None:
    process, _ = start(start_job, tmp_path)
    try:
        answers = Session(gdb, tmp_path).run(SCRIPT, "-p", process.pid)
        for one in ("break", "rank break", "runtime"):
            assert "is disabled, it would kill rank 0-2" in answers.output + answers[one], answers.output
        assert answers["enabled"] and not any(answers["enabled"])
        assert finish(process) == WHOLE
    finally:
        process.kill()


def test_a_ranks_own_process_can_be_stopped_in_that_rank(start_job: StartJob, gdb: Path, tmp_path: Path) -> None:
    process, _ = start(start_job, tmp_path)
    try:
        tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        script = """
            ask("rank 1")
            tell("break", ask("break take_step"))
            tell("enabled", [one.enabled for one in gdb.breakpoints() if one.visible])
            os.write(int(os.environ["GO"]), b"g")
            ask("continue")
            tell("hit", ask("rank"))
            tell("function", gdb.selected_frame().name())
            ask("delete")
        """
        assert process.stdin is not None
        script = script.replace('int(os.environ["GO"])', f'os.open("/proc/{process.pid}/fd/0", os.O_WRONLY)')
        answers = Session(gdb, tmp_path).run(script, "-p", tasks[1])
        assert answers["enabled"] == [True] and answers["function"] == "take_step" and "Rank 1 is" in answers["hit"], (
            answers.output
        )
        assert finish(process) == WHOLE
    finally:
        process.kill()


def test_lldb_refuses_them_too(start_job: StartJob, tmp_path: Path) -> None:
    process, _ = start(start_job, tmp_path)
    try:
        script = """
            tell("rank break", ask("rank break take_step"))
            tell("enabled", [location.IsEnabled() for one in target.breakpoints for location in one])
        """
        answers = Lldb(find_lldb(), tmp_path).run(script, "-p", process.pid)
        assert "are disabled, it would kill rank" in answers["rank break"], answers.output
        assert answers["enabled"] and not any(answers["enabled"])
        assert finish(process) == WHOLE
    finally:
        process.kill()


@pytest.mark.parametrize("command", ["break take_step", "rank break take_step"])
def test_a_launch_under_gdb(command: str, gdb: Path, start_job: StartJob, tmp_path: Path) -> None:
    process, program = start(start_job, tmp_path)
    process.kill()
    process.wait()
    script = f"""
        ask("set breakpoint pending on")
        ask({command!r})
        with open("input", "w") as file:
            file.write("go")
        tell("run", ask("run -n 3 --method pipprocess {program} < input"))
    """
    arguments = (built("rankrun").resolve(),)
    answers = Session(gdb, tmp_path).run(script, "--args", *arguments)
    for line in WHOLE:
        assert line.decode() in answers.output, answers.output
