"""`inspector watch` in a real terminal: what it shows, what the keys do, and how the terminal is afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inspector.terminal import PROMPT, Terminal, terminal
from tests.support.running import Job, StartJob, built

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
    """The cells below a title, "" where a row is none; no cells while no such title is on the screen."""
    lines = shown.splitlines()
    head = next((at for at, line in enumerate(lines[:3]) if line.startswith(" ")), 0)  # a low window has no verdict
    if not head or f" {name}" not in lines[head]:
        return []
    start = lines[head].index(f" {name}") + 1
    return [line[start:].split("  ")[0].strip() for line in lines[head + 1 : head + 1 + count]]


def wait_for_columns(screen: Terminal, *texts: str, **columns: list[str]) -> str:
    """What is shown once it has all of the texts and just these cells, an underline for the blank of a title."""

    def is_shown(shown: str) -> bool:
        return all(text in shown for text in texts) and all(
            column(shown, title.replace("_", " ")) == cells for title, cells in columns.items()
        )

    return screen.wait(is_shown, f"{texts} with {columns}")


def is_restored(screen: Terminal, before: str) -> str:
    """What is shown then."""
    shown = screen.wait_for_prompt()
    assert screen.ask("#{alternate_on} #{cursor_flag} #{mouse_any_flag}") == "0 1 0"
    assert screen.settings() == before
    return shown


def test_views_and_keys(screen: Terminal, job: Job) -> None:
    before = screen.settings()
    watch(screen, job.pid)
    shown = wait_for_columns(
        screen,
        f"process {job.pid}: {RANKS} of {RANKS} ranks",
        "deeper at watched.c:",
        "ranks: 5 of 5 rows; read at",
        rank=["0", "1", "2", "3", "4"],
        state=["running", *["blocked"] * 4],
        waits_in=["-", *(f"MPI_Recv from 0, tag {70 + rank}" for rank in range(1, RANKS))],
    )
    assert column(shown, "where")[4].startswith("deeper at watched.c:")
    assert screen.ask("#{alternate_on}") == "1"
    screen.keys("r")  # the first column, downwards
    wait_for_columns(screen, "rank v", rank=["4", "3", "2", "1", "0"])
    screen.keys("s")  # the next column, upwards; equal ones as they were
    wait_for_columns(screen, "state ^", rank=["1", "2", "3", "4", "0"], state=[*["blocked"] * 4, "running"])
    screen.keys("2")
    screen.wait(has_the_tree, "the stacks of all ranks")
    screen.keys("3")
    # all rows: `same` is none of them
    values = ["0: 100; 1: 90; 2: 80; 3: 70; 4: 60", "", "", "", ""]
    wait_for_columns(
        screen, "declared", "globals: 1 of 1 rows", variable=["mine", "", "", "", ""], **{"ranks: value": values}
    )
    screen.keys("4")
    screen.wait(lambda shown: len(column(shown, "heap used")) == RANKS and "" not in column(shown, "stack unused"))
    screen.keys("q")
    is_restored(screen, before)


def has_the_tree(shown: str) -> bool:
    """Rank 0 is in a system call: where the kernel tells its registers, it has a stack too."""
    return bool(
        "call ^" in shown
        and re.search(r"main at watched\.c:[\d,]+ +(4 +1|5 +0)-4", shown)
        and re.search(r"deeper at .* 1 +4", shown)
    )


def test_filter(screen: Terminal, job: Job) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("/")
    screen.type("tag 73")
    wait_for_columns(screen, "1 of 5 rows that hold 'tag 73'", rank=["3", "", "", "", ""])
    screen.keys("Enter")
    screen.keys("2")  # is a key again, and the filter holds in every view
    wait_for_columns(screen, "stacks: 0 of", call=["", "", "", "", ""])
    screen.keys("Escape")
    screen.wait(lambda shown: "that hold" not in shown and "main at" in shown)
    screen.keys("1", "/")
    screen.type("q1s")  # letters, no commands
    wait_for_columns(screen, "0 of 5 rows that hold 'q1s'", rank=["", "", "", "", ""])


def test_a_rank_is_opened(screen: Terminal, job: Job) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("Down", "Down", "Down", "Down", "Enter")
    screen.wait_for(
        "rank 4, blocked in MPI_Recv from 0, tag 74",
        "#0  MPI_Recv from librankmpi.so\n#1  deeper at watched.c:",
        "  mine = 60",
        "heap used",
        "read at ",
    )
    screen.keys("Escape")
    screen.wait_for("waits in")
    screen.keys("3")
    screen.wait_for("declared")
    screen.keys("Home", "Enter")
    screen.wait_for("mine, int, 4 bytes, global", "0: 100\n1: 90\n2: 80\n3: 70\n4: 60\n")
    screen.keys("q")
    screen.wait_for_prompt()


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
        screen.wait_for(", paused", "0: 42; 1-4: 0")
        print(43, file=pipe, flush=True)
        job.wait_for("told 43")
        screen.keys("r")  # paints both rows anew, from what was seen before the pause
        old = {"ranks: value": ["0: 42; 1-4: 0", "0: 100; 1: 90; 2: 80; 3: 70; 4: 60", "", "", ""]}
        wait_for_columns(screen, ", paused", variable=["told", "mine", "", "", ""], **old)
        screen.keys("p")
        screen.wait_for("0: 43; 1-4: 0")


def test_what_ranks_wait_for_and_what_keys_do(screen: Terminal, job: Job) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("5")
    screen.wait_for("running: others wait for it in the end", "for rank 0 in MPI_Recv", "waits: 2 of 2 rows")
    screen.keys("?")
    screen.wait_for("sort by the next column", "5 waits, 6 load: choose what is shown")
    screen.keys("2")  # a key of the rows, which the help does not heed
    screen.keys("Escape")
    screen.wait_for("waits: 2 of 2 rows")
    screen.keys("q")
    screen.wait_for_prompt()


def is_only_first(busy: list[str]) -> bool:
    return busy[1:] == ["0.000"] * (RANKS - 1) and busy[0] not in ("", "0.000")


def test_load(screen: Terminal, job: Job) -> None:
    """Rank 0 runs all the time, the others wait: between two looks they get none of it."""
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("6")
    screen.wait(lambda shown: is_only_first(column(shown, "busy")), "a busy rank 0, and four that wait")
    screen.keys("q")
    screen.wait_for_prompt()


def test_the_job_ends(screen: Terminal, job: Job) -> None:
    before = screen.settings()
    watch(screen, job.pid)
    screen.wait_for("waits in")
    job.close()
    the_last = ["running", *["blocked"] * 4]  # that was seen stays
    wait_for_columns(screen, f"process {job.pid} has ended; shown is ", state=the_last)
    screen.keys("2")
    screen.wait_for("main at watched.c")
    screen.keys("1", "Enter")
    screen.wait_for("switched to", f"process {job.pid} has ended; shown is ")
    screen.keys("q")
    assert f"inspector: process {job.pid} has ended" in is_restored(screen, before)


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
    assert "Traceback" not in is_restored(screen, before)


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
    screen.wait(lambda shown: "ranks: 5 of 5 rows; rea…" in shown and column(shown, "rank", 1) == ["0"])
    screen.keys("Down")  # there is room for one rank alone: what is shown now was painted in this window
    screen.wait(lambda shown: column(shown, "rank", 1) == ["1"])
    screen.resize(150, 40)
    everybody = ["0", "1", "2", "3", "4"]
    screen.wait(lambda shown: "memory" in shown and "rows; read" in shown and column(shown, "rank") == everybody)
    screen.keys("q")
    screen.wait_for_prompt()


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
    wait_for_columns(screen, ", paused", rank=["0", "1", "2", "3", "4"])
    screen.keys("q")
    screen.wait_for_prompt()


def test_what_cant_be_watched(screen: Terminal, job: Job, tmp_path: Path) -> None:
    watch(screen, 99999999)
    screen.wait_for("there is no process 99999999")
    screen.wait_for_prompt()
    (tmp_path / "file").write_text("x")
    screen.command("cd", tmp_path)  # so that no sentence is wider than the terminal
    screen.command(built("inspector"), "watch", "file")
    screen.wait_for("'file' is not a process")
    assert screen.ask("#{alternate_on}") == "0"
    command = [str(built("inspector")), "watch", str(job.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2 and "watch needs a terminal" in done.stderr and done.stderr.count("\n") == 1


def test_the_job_ends_while_one_of_its_ranks_is_open(screen: Terminal, job: Job) -> None:
    watch(screen, job.pid)
    screen.wait_for("waits in")
    screen.keys("Enter")
    screen.wait_for("switched to", "read at ")
    job.close()
    screen.wait_for("switched to", f"process {job.pid} has ended; shown is ")
