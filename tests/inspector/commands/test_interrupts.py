"""Long readings say how far they are, on a terminal alone; Ctrl-C and SIGTERM end them and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inspector.terminal import PROMPT, Terminal, terminal
from tests.support.running import ROOT, Job, StartJob, built, hear_interrupts
from tests.support.waiting import wait_until

RANKS, SIZE = 24, 24 << 20
PROGRAM = f"""
#include <mpi.h>
#include <stdio.h>
unsigned char bulk[{SIZE}] = {{1}};
int main(int argc, char **argv) {{
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (unsigned at = 0, value = rank + 1; at < sizeof bulk; at++)
        bulk[at] = (value = value * 1664525u + 1013904223u) >> 24;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}}
"""


@pytest.fixture
def large(start_job: StartJob, tmp_path: Path) -> Job:
    """Ranks whose images take long to read, all noise."""
    source, program = tmp_path / "large.c", tmp_path / "large"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", "-O2", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, program)
    job.wait_for("ready", timeout=120)
    job.wait_until_still()
    return job


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(tmp_path) as opened:
        opened.wait_for(PROMPT)
        yield opened


def test_progress_in_a_terminal(screen: Terminal, large: Job, tmp_path: Path) -> None:
    """The bar is on the screen while a snapshot is written, and gone with Ctrl-C, as is the file."""
    before = screen.settings()
    folder = tmp_path / "out"
    folder.mkdir()
    screen.keys("C-l")
    screen.command(built("inspector"), "snapshot", large.pid, "-o", folder / "file")
    screen.wait_for("snapshot, MB")
    screen.keys("C-c")
    shown = screen.wait_for_prompt()
    assert "snapshot, MB" not in shown and "Traceback" not in shown
    assert screen.ask("#{cursor_flag}") == "1"
    assert list(folder.iterdir()) == []
    assert screen.settings() == before
    screen.command("echo", "it is", "over")
    screen.wait_for("it is over")


@pytest.mark.parametrize(("way", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_left_behind(large: Job, tmp_path: Path, way: signal.Signals, status: int) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    command = [str(built("inspector")), "snapshot", str(large.pid), "-o", str(folder / "file")]
    writer = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
    )
    try:
        wait_until_written(folder, writer)
        os.kill(writer.pid, way)
        said, complained = writer.communicate(timeout=60)
    finally:
        writer.kill()
        writer.wait()
    assert (writer.returncode, said, complained) == (status, "", ""), "no bar in a pipe, no traceback"
    assert list(folder.iterdir()) == []
    assert not list((tmp_path / "cache").rglob("partial-*"))
    assert "TracerPid:\t0" in Path(f"/proc/{large.pid}/status").read_text()


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name.endswith(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
if sys.argv[1] == "inspector":
    from inspector.cli import main
else:
    from pieglobalsfind.cli import main
sys.exit(main(["--version"]))
"""


@pytest.mark.parametrize("loaded", ["pieglobalsfind.shell.exit_status", "command_line", "argparse", "nothing"])
@pytest.mark.parametrize("command", ["inspector", "pieglobalsfind"])
def test_interrupted_while_it_is_loaded(command: str, loaded: str) -> None:
    """From the first of our modules on."""
    words = [sys.executable, "-c", INTERRUPTED, command, loaded]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=60, preexec_fn=hear_interrupts, check=False
    )
    expected = (0, "") if loaded == "nothing" else (130, "")
    assert (done.returncode, done.stderr) == expected and (loaded == "nothing") == bool(done.stdout)


def wait_until_written(folder: Path, writer: subprocess.Popen[str]) -> None:
    """Until some of the file is there, under another name as yet."""
    wait_until(
        lambda: writer.poll() is not None or any(path.stat().st_size for path in folder.iterdir()),
        "it never began to write",
    )
    assert writer.poll() is None, "it has ended already"
