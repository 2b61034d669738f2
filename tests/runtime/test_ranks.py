"""The embedded runtime on real programs: what is private, how jobs end, what is refused.

The expected values follow from each program and the rank's number alone, as they would in separate processes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.mpich import printed_by_ranks
from tests.support.running import BIN, ROOT, StartJob

PROGRAMS = Path(__file__).resolve().parent / "programs"
COMPILERS = {".c": "rankcc", ".cpp": "rankcxx", ".f90": "rankfort"}


def build(name: str, folder: Path, *options: str) -> Path:
    source = PROGRAMS / name
    program = folder / source.stem
    command = [str(BIN / COMPILERS[source.suffix]), "-g", "-O1", *options, str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=120, cwd=folder)
    return program


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [BIN / "rankrun", *words]
    return subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=120)


def expected(name: str, ranks: int) -> list[str]:
    if name == "globals.c":
        lines = [f"{r}: {5 + r} {5 + r} {5 + r} {7 * (r + 1)} {100 + 2 * r} {r}" for r in range(ranks)]
    elif name == "exceptions.cpp":
        lines = [f"{r}: of rank {r} {r} {r} short{r} {2 * r}" for r in range(ranks)]
    else:
        lines = [f"{r}: {3 + r} {10 * r} {4 * r} 2" for r in range(ranks)]
    return sorted(lines)


@pytest.mark.parametrize("mode", ["scan", "exact"])
@pytest.mark.parametrize("elements", [1, 2])
@pytest.mark.parametrize("name", ["globals.c", "exceptions.cpp", "states.f90"])
def test_every_rank_has_its_own(name: str, elements: int, mode: str, tmp_path: Path) -> None:
    done = run("-n", 8, "--pes", elements, f"--rewrite={mode}", build(name, tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == expected(name, 8)


def test_many_ranks(tmp_path: Path) -> None:
    done = run("-n", 500, "--pes", 2, build("globals.c", tmp_path))
    assert sorted(done.stdout.splitlines()) == expected("globals.c", 500)


def test_method_none_shares(tmp_path: Path) -> None:
    done = run("-n", 3, "--method", "none", build("globals.c", tmp_path), -1)
    assert {line.split()[1] for line in done.stdout.splitlines()} == {str(5 + 0 + 1 + 2)}


@pytest.mark.parametrize("method", ["pie", "pip", "hls", "none"])
def test_libraries_are_loaded_from_the_programs_own_places(method: str, tmp_path: Path) -> None:
    """As in a process: by the run path and by `$ORIGIN`, which the loader takes from the object that calls it."""
    (tmp_path / "parts").mkdir()
    library = tmp_path / "parts" / "in_run_path.c"
    library.write_text("int value(void) { return 7; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", library, "-o", library.with_name("libin_run_path.so")], check=True)
    program = build("opens.c", tmp_path, "--method", method, "-Wl,-rpath,$ORIGIN/parts")
    result = run("-n", 3, "--method", method, program)
    line = "in the run path: 7, beside the program: 7, nowhere: -1, the program itself: yes"
    assert result.stdout.splitlines() == [line] * 3, result.stderr


def test_exit_status_is_the_largest(tmp_path: Path) -> None:
    assert run("-n", 4, build("globals.c", tmp_path), 2).returncode == 3


# The same lines in the same order as in a process of its own; where a rank has moved, what it registered went along.
ENDS = [
    ("pie", ()),
    ("pie", ("--rewrite=exact",)),
    ("pie", ("--procs", 2)),
    ("pip", ()),
    ("pipthread", ()),
    ("pipprocess", ()),
    ("tpsl", ()),
    ("fs", ()),
]


def test_every_option_is_documented_and_none_else() -> None:
    told = run("--help").stdout.partition("Methods:")[0]
    page = (ROOT / "docs" / "rankrun.md").read_text()
    assert set(re.findall(r"^ +(?:-n, +)?(--[a-z-]+)", told, re.MULTILINE)) - {"--help", "--version"} == set(
        re.findall(r"`(?:-n`, `)?(--[a-z-]+)", page.partition("## Options")[2])
    )


def test_a_program_that_is_started_by_itself_says_how(tmp_path: Path) -> None:
    """It is a shared object, and would die of a fault at its first byte."""
    done = subprocess.run([build("leaves.c", tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "this is a program for rankrun: start it by `rankrun -n RANKS PROGRAM`\n"


def test_a_rank_ends_as_a_process_does(tmp_path: Path) -> None:
    source, native = PROGRAMS / "ends.cpp", tmp_path / "native"
    subprocess.run(["mpicxx.mpich", "-O1", source, "-o", native], check=True, timeout=120)
    command, files = printed_by_ranks(3, native, tmp_path)
    subprocess.run(command, timeout=120)
    expected = [file.read_text().splitlines() for file in files]
    assert len(expected[2]) == 25 and "rank 1: calls exit anew" in expected[1]
    as_ever = build("ends.cpp", tmp_path).rename(tmp_path / "as_ever")
    moves = build("ends.cpp", tmp_path, "-DMOVES").rename(tmp_path / "moves")
    for_fs = build("ends.cpp", tmp_path, "--method", "fs")
    for method, options in ENDS:
        program = for_fs if method == "fs" else moves if "--procs" in options else as_ever
        done = run("-n", 3, "--method", method, *options, program)
        assert (done.returncode, done.stderr) == (5, ""), (method, options)
        printed = done.stdout.splitlines()
        assert [[line for line in printed if line.startswith(f"rank {rank}:")] for rank in range(3)] == expected, method


def test_what_all_ranks_use_ends_once(tmp_path: Path) -> None:
    done = run("-n", 3, "--method", "none", build("ends.cpp", tmp_path))
    ends = [line.split(": ")[1] for line in done.stdout.splitlines() if "stream" not in line]
    assert ends[-2:] == ["destroys the first global", "calls the object's destructor"]
    assert ends.count("destroys array 1") == 1 and ends.count("calls atexit") == 3


@pytest.mark.parametrize("method", ["pie", "tpsl"])
def test_zeros_that_nobody_writes_need_no_memory(method: str, tmp_path: Path) -> None:
    done = run("-n", 1, "--method", method, build("zeros.c", tmp_path))
    same, wrong, grown = done.stdout.split(", ")
    assert (same, wrong) == ("1 same", "0 wrong")
    assert method == "tpsl" or int(grown.split()[0]) < 1024


def test_a_job_ends_while_a_rank_waits_for_input(tmp_path: Path) -> None:
    program, written = build("reading.c", tmp_path), tmp_path / "written"
    command = [str(BIN / "rankrun"), "-n", "2", "--pes", "2", str(program), str(written)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        try:
            assert job.wait(timeout=60) == 7
        finally:
            job.kill()
        assert job.stderr and "rank 1: MPI_Abort" in job.stderr.read()
    assert written.read_text() == "kept back"


@pytest.mark.parametrize("mode", ["scan", "exact"])
def test_the_log_names_every_rewritten_word(mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = build("globals.c", tmp_path)
    assert run("-n", 2, f"--rewrite={mode}", "--rewrite-log", log, program).returncode == 0
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True, timeout=60).stdout
    pointer = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" pointer"))
    places = [entry for entry in entries if entry["place"]["offset"] == pointer]
    assert sorted(entry["rank"] for entry in places) == [0, 1]
    assert all(entry["place"]["object"] == str(program) for entry in places)
    assert all(entry["new"] - entry["address"] == entry["old"] - base(entry, program) for entry in places)
    assert {entry["reason"] for entry in entries} <= ({"scan"} if mode == "scan" else {"relocation", "dynamic"})


def base(entry: dict[str, int], program: Path) -> int:
    """Where the word stood in the original: as far from the pointer's target as in the copy."""
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True, timeout=60).stdout
    values = {line.split()[-1]: int(line.split()[0], 16) for line in symbols.splitlines() if len(line.split()) == 3}
    return entry["old"] - values["global"] + values["pointer"]


def test_deadlock_is_reported(tmp_path: Path) -> None:
    done = run("-n", 3, "--exit-on-deadlock", build("deadlock.c", tmp_path))
    assert done.returncode == 3
    assert "rank 0: MPI_Recv, peer 1, tag 7" in done.stderr
    assert "ranks 1-2: MPI_Barrier\n" in done.stderr


LEAVES = "rankrun: rank 1 has left with exit status {} and without MPI_Finalize, and the job ends with it\n"
SIGNAL = "rankrun: rank 1 {}was ended by signal {}, and the job with it\n"
SEGMENT, ABORT = "11 (Segmentation fault)", "6 (Aborted)"


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("leaves.c", tmp_path_factory.mktemp("leaves"))


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        (("_exit", 0), 9, LEAVES.format(0)),  # that of the processes which MPICH's mpiexec kills then
        (("_exit", 3), 3, LEAVES.format(3)),
        (("exit", 3), 3, LEAVES.format(3)),
        (("finalized", 5), 5, ""),
        (("fault",), -11, SIGNAL.format("", SEGMENT)),
        (("full",), -11, SIGNAL.format("", SEGMENT)),
        (("abort",), -6, SIGNAL.format("", ABORT)),
        (("handled",), -11, "the program's own handler\n"),
    ],
    ids=str,
)
def test_a_rank_that_leaves_is_named(how: tuple[object, ...], status: int, says: str, leaves: Path) -> None:
    done = run("-n", 3, leaves, *how)
    assert (done.returncode, done.stderr) == (status, says)
    if how[0] == "finalized":
        assert sorted(done.stdout.splitlines()) == ["rank 0 goes on", "rank 2 goes on"]


@pytest.mark.parametrize(
    ("options", "where"),
    [(("--procs", 2), r"in process 0 of the job \(pid \d+\) "), (("--method", "pipprocess"), "")],
    ids=str,
)
def test_a_crash_in_a_process_of_the_job_names_the_rank(options: tuple[object, ...], where: str, leaves: Path) -> None:
    done = run("-n", 3, *options, leaves, "fault")
    said = SIGNAL.format(where, r"11 \(Segmentation fault\)")
    assert done.returncode == 128 + 11 and re.fullmatch(said, done.stderr), done.stderr


def test_ranks_that_wait_for_the_same_are_one_line(leaves: Path) -> None:
    done = run("-n", 24, "--exit-on-deadlock", leaves, "deadlock", 0)
    assert done.stderr.splitlines()[1:] == [
        "  ranks 0,7,14,21: MPI_Finalize",
        "  ranks 1-6,8-13,15-20,22-23: MPI_Recv, peer 1, tag 7",
    ]


def test_the_report_of_many_ranks_is_short(leaves: Path) -> None:
    done = run("-n", 120, "--stack-size", 65536, "--exit-on-deadlock", leaves, "deadlock", 1)
    _, finalize, receive = done.stderr.splitlines()
    assert finalize.startswith("  ranks 0,7,14,21,") and finalize.endswith(",112,119: MPI_Finalize")
    assert receive.startswith("  ranks 1-6,8-13,") and receive.endswith(",113-118: MPI_Recv")


def test_a_deadlocked_job_waits_for_a_debugger(tmp_path: Path, start_job: StartJob) -> None:
    job = start_job(BIN / "rankrun", "-n", 2, build("deadlock.c", tmp_path))
    job.wait_until_still()
    done = subprocess.run(
        [BIN / "pieglobalsfind", "--pid", str(job.pid), "1"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr


def test_thread_local_variables_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "threads.c"
    source.write_text("__thread int mine;\nint main(void) { return mine; }\n")
    subprocess.run([BIN / "rankcc", source, "-o", tmp_path / "threads"], check=True, timeout=60)
    done = run("-n", 2, tmp_path / "threads")
    assert done.returncode == 2
    assert "thread-local" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["program"], "number of ranks is missing"),
        (["-n", "0", "program"], "from 1 to"),
        (["-n", "4"], "program is missing"),
        (["-n", "2", "--pes", "3", "program"], "more than there are ranks"),
        (["-n", "2", "--method", "magic", "program"], "method 'magic' is unknown"),
        (["-n", "2", "--stack-size", "much", "program"], "number of bytes"),
        (["-n", "2", "./nowhere"], "No such file"),
        (["-n", "2", "no-such-program"], "neither in this folder nor in PATH"),
        (["-n", "2", "/bin/true"], "rankcc"),
        (["-n", "2", "/dev/zero"], "not a regular file"),
        (["-n", "2", "/"], "not a regular file"),
        (["-n", "2", "--frobnicate", "program"], "no option"),
    ],
)
def test_bad_calls_get_one_sentence(words: list[str], says: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_pipe_that_nobody_writes_to_is_no_program(tmp_path: Path) -> None:
    """The loader would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    done = run("-n", 2, tmp_path / "pipe")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "pipe is not a regular file" in done.stderr


@pytest.mark.parametrize("misuse", ["twice", "merged", "inside", "odd", "realloc"])
@pytest.mark.parametrize("method", ["pie", "pip", "fs"])
def test_a_block_that_is_freed_twice(method: str, misuse: str, tmp_path: Path) -> None:
    """The job ends as under glibc, and its rank is named; it spun for ever."""
    program = build("freed.c", tmp_path, "-Wno-use-after-free", "-fno-builtin")
    done = run("-n", 3, "--method", method, program, misuse)
    assert done.returncode == -signal.SIGABRT
    assert "free or realloc of a pointer that malloc did not return, or that was freed before" in done.stderr
    assert "rank 1 was ended by signal 6" in done.stderr


@pytest.mark.parametrize("method", ["pie", "pip", "fs"])
def test_blocks_that_are_freed_once(method: str, tmp_path: Path) -> None:
    done = run("-n", 3, "--method", method, build("freed.c", tmp_path, "-fno-builtin"), "nothing")
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_that_are_cut(tmp_path: Path) -> None:
    """The loader would touch pages beyond the end of the file, and the kernel answer with SIGBUS."""
    whole = build("globals.c", tmp_path)
    content = whole.read_bytes()
    for size in (0, 10, 63, 64, 300, 4096, 5000, len(content) // 2):
        cut = tmp_path / f"cut{size}"
        cut.write_bytes(content[:size])
        cut.chmod(0o755)
        done = run("-n", 2, cut)
        assert done.returncode == 2 and done.stderr.startswith("rankrun: ") and done.stderr.count("\n") == 1, done


GLIBC = tuple(map(int, (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2].split(".")))


@pytest.mark.skipif(GLIBC >= (2, 41), reason="dlopen(3) loads no such program from glibc 2.41 on")
@pytest.mark.parametrize("method", ["pie", "pip", "fs", "none"])
def test_code_on_the_stack_runs(method: str, tmp_path: Path) -> None:
    """As in a process, where the program's file says that it needs this (PT_GNU_STACK)."""
    done = run("-n", 3, "--method", method, build("nested.c", tmp_path, "-O0", "-Wl,-z,execstack"))
    assert sorted(done.stdout.splitlines()) == ["40", "41", "42"], done.stderr
