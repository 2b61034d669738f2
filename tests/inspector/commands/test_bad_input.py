"""What the inspector says of processes that change or end while it reads, of containers, of other people's processes,
and of names that are made to mislead terminals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from inspector import cli
from inspector.terminal import progress
from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import TargetError
from pieglobalsfind.targets import open_target
from tests.support.inspector import browser
from tests.support.inspector.ranks import SOURCES
from tests.support.inspector.terminal import PROMPT, terminal
from tests.support.running import Job, StartJob, built
from tests.support.waiting import wait_until, wait_until_it_loops

RANKS = 4
HOSTILE = "[bold red]evil[/bold red]\033[31m\r<img src=x onerror=alert(1)>"
HARMLESS = "[bold red]evil[/bold red]\\033[31m\\015<img src=x onerror=alert(1)>"
CHANGING = """
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int mine;
static void change(int number) {
    execl("/bin/sleep", "sleep", "600", NULL);
}
int main(int argc, char **argv) {
    int word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    signal(SIGUSR1, change);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mine == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, mine, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""


@pytest.fixture
def changing(start_job: StartJob, tmp_path: Path) -> Job:
    """A job that becomes another program at SIGUSR1."""
    source, program = tmp_path / "changing.c", tmp_path / "changing"
    source.write_text(CHANGING)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, program)
    job.wait_until_still()
    return job


def letter(pid: int) -> str:
    """The kernel's letter for the state of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]


def execs(job: Job) -> None:
    os.kill(job.pid, signal.SIGUSR1)
    wait_until(lambda: Path(f"/proc/{job.pid}/comm").read_text() == "sleep\n", "it never became another program")


def becomes_a_zombie(job: Job) -> None:
    os.kill(job.pid, signal.SIGKILL)
    wait_until(lambda: letter(job.pid) == "Z", "it never ended")


def vanishes(job: Job) -> None:
    job.close()


@pytest.mark.parametrize("change", [execs, becomes_a_zombie, vanishes])
@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("ranks", "memory"),
        ("globals", "globals"),
        ("pointers", "pointers"),
        ("stacks", "stacks"),
        ("report", "pointers"),
    ],
)
def test_in_the_middle(
    changing: Job, capsys: pytest.CaptureFixture[str], change: object, command: str, part: str
) -> None:
    """It happens after one rank was read: there is a sentence, or what was read before and why there is no more."""
    assert callable(change)

    def listen(what: str, done: int, total: int) -> None:
        if (what, done) == (part, 1):
            change(changing)

    with progress.told_to(listen):
        status = cli.main([command, str(changing.pid), "--json"])
    said = capsys.readouterr()
    if change is not execs and status == 0:
        assert json.loads(said.out) and "has ended" in said.out and said.err == ""
        return
    assert (status, said.out) == (2, "")
    assert said.err.count("\n") == 1 and f"process {changing.pid} " in said.err
    assert "while it was read" in said.err or "has ended" in said.err


@pytest.mark.parametrize("seen", [False, True])
def test_before_ranks_are_found(changing: Job, seen: bool) -> None:
    """Whether its memory map was read already or not: where the registry was there is something else, or nothing."""
    target = open_target(pid=changing.pid)
    if seen:
        target.maps()
    execs(changing)
    with pytest.raises(TargetError, match="has executed another program while it was read"):
        decode(target)


def test_afterwards(changing: Job, capsys: pytest.CaptureFixture[str]) -> None:
    execs(changing)
    assert cli.main(["report", str(changing.pid)]) == 2
    assert "has no virtual ranks" in capsys.readouterr().err
    becomes_a_zombie(changing)
    assert cli.main(["report", str(changing.pid)]) == 2
    assert "has ended, its parent has not yet waited for it" in capsys.readouterr().err


def test_a_program_whose_name_is_no_text(start_job: StartJob, tmp_path: Path) -> None:
    """Its file is found all the same, in the job, in a snapshot of it, and by its name."""
    program = tmp_path / os.fsdecode(b"\xff\xfe")
    subprocess.run([str(built("rankcc")), "-g", str(SOURCES / "ring.c"), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 7, program)
    job.wait_until_still()
    snapshot = tmp_path / "snapshot"
    for words in (["snapshot", job.pid, "-o", snapshot], ["audit", job.pid], ["audit", program]):
        done = subprocess.run([str(built("inspector")), *map(str, words)], capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
    for target in (job.pid, snapshot):
        command = [str(built("inspector")), "report", str(target), "--json"]
        found = json.loads(subprocess.run(command, capture_output=True, timeout=60).stdout)
        (own,) = (one for one in found["globals"] if one["name"] == "own")
        assert [one["value"] for one in own["groups"]] == [str(100 + rank) for rank in range(7)]


def test_watch_of_a_process_that_execs(changing: Job, tmp_path: Path) -> None:
    with terminal(tmp_path) as screen:
        screen.wait_for(PROMPT)
        screen.command(built("inspector"), "watch", changing.pid, "--every", "100ms")
        screen.wait_for("waits in")
        execs(changing)
        screen.wait_for("has no virtual ranks", "MPI_Recv")  # the last that was seen stays
        screen.keys("q")
        screen.wait_for_prompt()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize("words", [["report"], ["report", "--job"], ["mpir"]])
def test_other_peoples_processes(changing: Job, tmp_path: Path, words: list[str]) -> None:
    said = tmp_path / "said"
    assert cli.main([*words, "99999999"]) == 2  # loads what others may not read where the project is
    child = os.fork()
    if child == 0:
        status = 99
        try:
            descriptor = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            status = subprocess_like([*words, str(changing.pid)])
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert said.read_text().startswith(f"inspector: no permission to read process {changing.pid}: ")
    assert said.read_text().count("\n") == 1


def subprocess_like(words: list[str]) -> int:
    """The command, in this process, with standard streams of its own."""
    import sys

    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    try:
        return cli.main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_process_in_a_container(start_job: StartJob, tmp_path: Path) -> None:
    """Its program is at a path that leads elsewhere, or nowhere, outside."""
    unshare = shutil.which("unshare")
    assert unshare is not None
    if subprocess.run([unshare, "-m", "true"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("this machine makes no mount namespaces")
    program = tmp_path / "inside" / "waits"
    program.parent.mkdir()
    subprocess.run([str(built("rankcc")), "-g", str(SOURCES / "waits.c"), "-o", str(program)], check=True, timeout=60)
    script = 'mount --bind "$1" /mnt && exec "$2" -n 4 /mnt/waits'
    job = start_job(unshare, "-m", "sh", "-c", script, "sh", program.parent, built("rankrun").resolve())
    job.wait_for("ready")
    wait_until_it_loops(job.pid)
    assert not Path("/mnt/waits").exists()
    done = subprocess.run(
        [str(built("inspector")), "report", str(job.pid), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "going" in {one["name"] for one in found["globals"]} and len(found["ranks"]) == 4
    assert not any("not there" in one for one in found["warnings"])
    tree = subprocess.run([str(built("inspector")), "stacks", str(job.pid)], capture_output=True, text=True, timeout=60)
    assert "even at waits.c:" in tree.stdout


@pytest.fixture
def hostile(start_job: StartJob, tmp_path: Path) -> Job:
    """A job in a function whose symbol is made of markup and control characters."""
    (tmp_path / "evil.c").write_text(
        "#include <mpi.h>\nvoid evil(int rank) { int word;\n"
        "MPI_Recv(&word, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nvoid evil(int);\nint main(int argc, char **argv) { int rank;\n"
        "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Barrier(MPI_COMM_WORLD);\n"
        'if (rank == 0) puts("ready"); fflush(stdout); evil(rank); return 0; }\n'
    )
    rankcc = str(built("rankcc"))
    for command in (
        [rankcc, "-g0", "-fno-inline", "-c", "evil.c", "-o", "evil.o"],
        [rankcc, "-g0", "-c", "main.c", "-o", "main.o"],
        ["objcopy", f"--redefine-sym=evil={HOSTILE}", "evil.o"],
        ["objcopy", f"--redefine-sym=evil={HOSTILE}", "main.o"],
        [rankcc, "evil.o", "main.o", "-o", "hostile"],
    ):
        subprocess.run(command, check=True, cwd=tmp_path, timeout=60)
    job = start_job(built("rankrun"), "-n", RANKS, tmp_path / "hostile")
    job.wait_until_still()
    return job


@pytest.mark.parametrize("form", ["--tree", "--flat", "--folded"])
def test_hostile_function_names(hostile: Job, form: str) -> None:
    command = [str(built("inspector")), "stacks", str(hostile.pid), form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and HARMLESS in done.stdout, done.stderr
    assert "\033" not in done.stdout and "\r" not in done.stdout


def test_hostile_function_names_in_a_terminal(hostile: Job, tmp_path: Path) -> None:
    with terminal(tmp_path, columns=200) as screen:
        screen.wait_for(PROMPT)
        screen.command(built("inspector"), "stacks", hostile.pid)
        screen.wait_for(HARMLESS)
        screen.wait_for_prompt()
        screen.command(built("inspector"), "watch", hostile.pid)
        screen.wait_for("waits in")
        screen.keys("2")
        screen.wait_for("call ^", HARMLESS)
        screen.keys("Enter")
        screen.wait_for("#1  " + HARMLESS)


def test_hostile_function_names_in_a_browser(hostile: Job, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    command = [str(built("inspector")), "report", str(hostile.pid), "--html", str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with browser.page(tmp_path) as page:
        page.open(file.as_uri())
        titles = page.value("[...document.querySelectorAll('#stacks title')].map(one => one.textContent)")
        assert any(HARMLESS in title for title in titles)
        page.click("#ranks th")
        page.click("input[data-table=ranks]")
        page.type("<img src=x onerror=alert(1)>")
        assert page.value("document.querySelectorAll('img').length") == 0
        assert not [event for event in page.events if event["method"] == "Page.javascriptDialogOpening"]
