"""`inspector watch` in a real terminal: what it shows, what the keys do, and how the terminal is afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Job, StartJob, built
from tests.inspector.terminal import PROMPT, Terminal, terminal

RANKS = 5
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int told, mine, same = 3;
static void listen(FILE *pipe) {
    while (fscanf(pipe, "%d", &told) == 1) {
        printf("told %d\\n", told);
        fflush(stdout);
    }
}
static void deeper(int rank) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, 0, 70 + rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = 100 - 10 * rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 4)
        deeper(rank);
    if (rank > 0)
        MPI_Recv(&word, 1, MPI_INT, 0, 70 + rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; turn < 16; turn++)
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &word, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    listen(fopen(argv[1], "r"));
    return 0;
}
"""


@pytest.fixture
def job(start_job: StartJob, tmp_path: Path) -> Job:
    """Rank 0 reads numbers from a pipe into `told`, the others wait for it."""
    source, program = tmp_path / "watched.c", tmp_path / "watched"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    os.mkfifo(tmp_path / "pipe")
    started = start_job(built("rankrun"), "-n", RANKS, program, tmp_path / "pipe")
    started.wait_for("ready")
    return started


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(tmp_path) as opened:
        opened.wait_for(PROMPT)
        yield opened


def watch(screen: Terminal, pid: int, *options: str) -> None:
    screen.command(built("inspector"), "watch", pid, "--every", "100ms", *options)


def column(shown: str, name: str, count: int = RANKS) -> list[str]:
    """The cells below a title, by where the title stands; none while there is no table on the screen."""
    lines = shown.splitlines()
    heads = [number for number, line in enumerate(lines) if re.match(r" [a-z]+( [v^])?  ", line)]
    if len(heads) != 1 or f" {name}" not in lines[heads[0]]:
        return []
    head = heads[0]
    start = lines[head].index(f" {name}") + 1
    return [line[start:].split("  ")[0].strip() for line in lines[head + 1 : head + 1 + count]]


def is_restored(screen: Terminal, before: str) -> None:
    screen.wait(lambda shown: shown.rstrip().endswith(PROMPT))
    assert screen.ask("#{alternate_on} #{cursor_flag} #{mouse_any_flag}") == "0 1 0"
    assert screen.settings() == before


def test_views_and_keys(screen: Terminal, job: Job) -> None:
    before = screen.settings()
    watch(screen, job.pid)
    shown = screen.wait_for("waits in")
    assert screen.ask("#{alternate_on}") == "1"
    assert f"process {job.pid}: {RANKS} of {RANKS} ranks" in shown
    assert column(shown, "rank") == ["0", "1", "2", "3", "4"]
    assert column(shown, "state") == ["running", *["blocked"] * 4]
    assert column(shown, "waits in")[1:] == [f"MPI_Recv from 0, tag {70 + rank}" for rank in range(1, RANKS)]
    assert column(shown, "where")[4].startswith("deeper at watched.c:")
    screen.keys("r")  # the first column, downwards
    assert column(screen.wait_for("rank v"), "rank") == ["4", "3", "2", "1", "0"]
    screen.keys("s")  # the next column, upwards; equal ones as they were
    assert column(screen.wait_for("state ^"), "state") == [*["blocked"] * 4, "running"]
    screen.keys("2")
    shown = screen.wait_for("call ^")
    # rank 0 is in a system call: where the kernel tells its registers, it has a stack too
    assert re.search(r"main at watched\.c:[\d,]+ +(4 +1|5 +0)-4", shown), shown
    assert re.search(r"deeper at .* 1 +4", shown), shown
    screen.keys("3")
    shown = screen.wait_for("declared")
    assert "0: 100; 1: 90; 2: 80; 3: 70; 4: 60" in shown and " same " not in shown
    screen.keys("4")
    assert column(screen.wait_for("heap used"), "stack unused")[1] != ""
    screen.keys("q")
    is_restored(screen, before)


def test_filter(screen: Terminal, job: Job) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("/")
    screen.type("tag 73")
    screen.wait(lambda shown: "1 of 5 rows" in shown and column(shown, "rank") == ["3", "", "", "", ""])
    screen.keys("Enter")
    screen.keys("2")  # is a key again, and the filter holds in every view
    screen.wait_for("stacks: 0 of")
    screen.keys("Escape")
    screen.wait(lambda shown: "that hold" not in shown and "main at" in shown)
    screen.keys("1", "/")
    screen.type("q1s")  # letters, no commands
    screen.wait_for("0 of 5 rows that hold 'q1s'")


def test_a_rank_is_opened(screen: Terminal, job: Job) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("Down", "Down", "Down", "Down", "Enter")
    shown = screen.wait_for("rank 4, blocked in MPI_Recv from 0, tag 74")
    assert "#0  MPI_Recv from librankmpi.so\n#1  deeper at watched.c:" in shown
    assert "  mine = 60" in shown and "heap used" in shown
    screen.keys("Escape")
    screen.wait_for("waits in")
    screen.keys("3")
    screen.wait_for("declared")
    screen.keys("Home", "Enter")
    shown = screen.wait_for(", int, 4 bytes, global")
    assert "4: 60" in shown or "mine" not in shown
    screen.keys("q")
    screen.wait_for(PROMPT)


def test_it_follows_the_job_and_does_not_stop_it(screen: Terminal, job: Job, tmp_path: Path) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("3")
    with (tmp_path / "pipe").open("w") as pipe:
        for number in (41, 42):
            print(number, file=pipe, flush=True)
            job.wait_for(f"told {number}")
            screen.wait_for(f"0: {number}; 1-4: 0")
        status = Path(f"/proc/{job.pid}/status").read_text()
        assert "TracerPid:\t0" in status and "stopped" not in status
        screen.keys("p")
        shown = screen.wait_for(", paused")
        print(43, file=pipe, flush=True)
        job.wait_for("told 43")
        assert "0: 42; 1-4: 0" in shown
        screen.keys("p")
        screen.wait_for("0: 43; 1-4: 0")


def test_the_job_ends(screen: Terminal, job: Job) -> None:
    before = screen.settings()
    watch(screen, job.pid)
    screen.wait_for("waits in")
    job.close()
    shown = screen.wait_for(f"process {job.pid} has ended; shown is ")
    assert column(shown, "state")[1:] == ["blocked"] * 4, "the last that was seen stays"
    screen.keys("2")
    screen.wait_for("main at watched.c")
    screen.keys("q")
    is_restored(screen, before)
    assert f"inspector: process {job.pid} has ended" in screen.shown()


@pytest.mark.parametrize("way", ["C-c", "SIGTERM", "SIGHUP", "SIGINT"])
def test_the_terminal_is_restored(screen: Terminal, job: Job, way: str) -> None:
    before = screen.settings()
    watch(screen, job.pid)
    screen.wait_for("waits in")
    if way == "C-c":
        screen.keys("/")  # also from within the box
        screen.keys("C-c")
    else:
        os.kill(watcher(screen), getattr(signal, way))
    is_restored(screen, before)
    assert "Traceback" not in screen.shown()


def watcher(screen: Terminal) -> int:
    """The process in the foreground of the terminal."""
    shell = screen.ask("#{pane_pid}")
    (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(child)


def test_the_window_is_resized(screen: Terminal, job: Job) -> None:
    screen.command("export", "LINES=30", "COLUMNS=110")  # what some shells do; it must not be believed
    watch(screen, job.pid)
    screen.wait_for("per second")
    screen.resize(60, 12)
    shown = screen.wait(lambda shown: "waits in" in shown and "per second" not in shown and "rows; read" in shown)
    assert len(shown.splitlines()) <= 12 and max(map(len, shown.splitlines())) <= 60
    screen.resize(24, 5)
    screen.wait(lambda shown: "MPI" in shown or "running" in shown)
    screen.resize(150, 40)
    everybody = ["0", "1", "2", "3", "4"]
    screen.wait(lambda shown: "memory" in shown and "rows; read" in shown and column(shown, "rank") == everybody)
    screen.keys("q")
    screen.wait_for(PROMPT)


def test_what_is_written_over_is_painted_anew(screen: Terminal, job: Job) -> None:
    """As by `wall`."""
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("p")  # else a look could bring something back
    screen.wait_for(", paused")
    tty = Path(screen.ask("#{pane_tty}"))

    def is_wiped(shown: str) -> bool:
        if "waits in" in shown:  # also if the first of what it paints came later
            tty.write_text("\033[2J")
        return "waits in" not in shown

    screen.wait(is_wiped)
    screen.keys("C-l")
    screen.wait(lambda shown: column(shown, "rank") == ["0", "1", "2", "3", "4"])
    screen.keys("q")
    screen.wait_for(PROMPT)


def test_what_cant_be_watched(screen: Terminal, job: Job, tmp_path: Path) -> None:
    watch(screen, 99999999)
    screen.wait_for("there is no process 99999999")
    (tmp_path / "file").write_text("x")
    screen.command(built("inspector"), "watch", tmp_path / "file")
    screen.wait_for("is no process")
    assert screen.ask("#{alternate_on}") == "0"
    command = [str(built("inspector")), "watch", str(job.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2 and "watch needs a terminal" in done.stderr and done.stderr.count("\n") == 1
