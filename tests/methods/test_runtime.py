"""The embedded runtime under each method: programs run as under MPICH, and what can't be served is refused first."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.elf.file import ElfFile
from tests.methods.matrix import BYTE_COPIES, METHODS
from tests.mpi.test_against_mpich import HERE, build, mpich_lines
from tests.support.gdb.session import Session as Gdb
from tests.support.methods import RANKS, compile_kinds, hold
from tests.support.running import ROOT, StartJob, built
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

PRIVATE = ("pie", "hls", "pip", "pipthread", "pipprocess", "fs", "tpsl")
"""The methods that make every variable of a program private: any MPI program runs under them."""
GUARDED = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    FILE *mark = fopen(argv[1], "w");
    fclose(mark);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
"""


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)


def compiled(folder: Path, source: str, method: str, *options: str, name: str = "program.c") -> Path:
    (folder / name).write_text(source)
    program = folder / f"program.{method}"
    compiler = built("rankcxx" if name.endswith(".cpp") else "rankcc")
    done = run(compiler, f"--method={method}", "-g", *options, folder / name, "-o", program)
    assert done.returncode == 0, done.stderr
    return program


# tests/mpi has pie; where ranks are kernel tasks, forks.c can't do what it does (docs/methods.md)
KERNEL_TASKS = ("pipprocess", "pipthread", "tpsl")
MPI_PROGRAMS = [
    (path.name, method)
    for path in sorted(HERE.iterdir())
    for method in PRIVATE
    if method != "pie" and not (path.name == "forks.c" and method in KERNEL_TASKS)
]


@pytest.mark.parametrize("method", KERNEL_TASKS)
def test_ranks_that_are_kernel_tasks_start_programs(method: str, tmp_path: Path) -> None:
    source = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d started %d\\n", rank, WEXITSTATUS(system("exit 6")));
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
"""
    done = run(built("rankrun"), "-n", 3, "--method", method, compiled(tmp_path, source, method))
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, [f"{rank} started 6" for rank in range(3)])


@pytest.mark.parametrize(("name", "method"), MPI_PROGRAMS)
def test_mpi_programs(name: str, method: str, shared: Shared) -> None:
    program = build(HERE / name, shared, f"--method={method}")
    done = run(built("rankrun"), "-n", 4, "--method", method, program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == mpich_lines(4, HERE / name, shared)


def test_the_values_are_private_exactly_where_the_method_says_so(
    start_job: StartJob, tmp_path: Path, shared: Shared
) -> None:
    everything = {"exported", "file_static", "counter", "per_thread", "inlined", "pointee"}
    private = {
        **dict.fromkeys(PRIVATE, everything),
        "none": set(),
        "struct": set(),
        "tls": {"per_thread"},
        "tls-word": {"per_thread"},
        "swap": {"exported", "inlined"},
    }
    for method in METHODS:
        held = hold(start_job, method, compile_kinds(method, tmp_path, shared))
        own = {
            name
            for name in everything
            if [held.truth[rank][name].value % 100 for rank in range(RANKS)] == list(range(RANKS))
        }
        assert own == private[method], method


# ---- refusals ----


@pytest.mark.parametrize("method", BYTE_COPIES)
def test_thread_local_variables_under_byte_copies(method: str, tmp_path: Path) -> None:
    source = GUARDED.replace("int main", "__thread int one;\nint main")
    program = compiled(tmp_path, source, method)
    done = run(built("rankrun"), "-n", 2, "--method", method, program, tmp_path / "mark")
    assert done.returncode == 2 and "thread-local" in done.stderr and method in done.stderr
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("method", ["pip", "pipthread", "pipprocess"])
def test_more_ranks_than_namespaces(method: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, GUARDED, method)
    done = run(built("rankrun"), "-n", 16, "--method", method, program, tmp_path / "mark")
    assert done.returncode == 2 and "15, not 16" in done.stderr
    assert not (tmp_path / "mark").exists()
    assert run(built("rankrun"), "-n", 15, "--method", method, program, tmp_path / "mark").returncode == 0


def test_dynamic_thread_local_storage_under_tls(tmp_path: Path) -> None:
    source = GUARDED.replace("int main", "__thread int one;\nint main").replace("MPI_Init", "one = 1; MPI_Init")
    program = compiled(tmp_path, source, "none")
    done = run(built("rankrun"), "-n", 2, "--method", "tls", program, tmp_path / "mark")
    assert done.returncode == 2 and "build it with rankcc --method tls" in done.stderr
    assert not (tmp_path / "mark").exists()


def test_swap_needs_open_names_and_one_element(tmp_path: Path) -> None:
    source = GUARDED.replace("int main", "int one = 1;\nint main").replace("MPI_Init", "one = 2; MPI_Init")
    closed, opened = compiled(tmp_path, source, "none"), compiled(tmp_path, source, "swap")
    done = run(built("rankrun"), "-n", 2, "--method", "swap", closed, tmp_path / "mark")
    assert done.returncode == 2 and "build it with rankcc --method swap" in done.stderr
    done = run(built("rankrun"), "-n", 2, "--pes", 2, "--method", "swap", opened, tmp_path / "mark")
    assert done.returncode == 2 and "2 processing elements" in done.stderr
    assert not (tmp_path / "mark").exists()


def test_a_level_for_a_static_variable(tmp_path: Path) -> None:
    source = "#include <rank_program.h>\n" + GUARDED.replace(
        "int main", "static RANK_LEVEL(process) int hidden = 1;\nint main"
    ).replace("MPI_Init", "hidden += argc; MPI_Init")
    program = compiled(tmp_path, source, "hls")
    done = run(built("rankrun"), "-n", 2, "--method", "hls", program, tmp_path / "mark")
    assert done.returncode == 2 and "'hidden'" in done.stderr
    assert not (tmp_path / "mark").exists()


def test_an_unknown_method_names_those_that_there_are() -> None:
    for command in ("rankrun", "rankcc"):
        done = run(built(command), "--method", "magic", "x.c")
        assert done.returncode == 2
        assert all(method in done.stderr for method in METHODS), done.stderr


def test_share_code_is_for_methods_that_copy_code(tmp_path: Path) -> None:
    program = compiled(tmp_path, GUARDED, "fs")
    done = run(built("rankrun"), "-n", 2, "--method", "fs", "--share-code", program, tmp_path / "mark")
    assert done.returncode == 2 and "copies no code" in done.stderr


# ---- levels, shared code, roots ----

LEVELS = """
#include <mpi.h>
#include <rank_program.h>
#include <stdio.h>
RANK_LEVEL(process) int whole = 100;
RANK_LEVEL(thread) int part = 10;
int mine;
int *through_pointer = &whole;
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine++;
    part++;
    for (int turn = 0; turn < 4; turn++) { /* one after another: the counters have no lock */
        if (turn == rank)
            whole++;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("rank %d whole %d part %d mine %d pointer %d\\n", rank, whole, part, mine, *through_pointer);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("more", [(), ("--share-code",), ("--rewrite=exact",)])
def test_levels(tmp_path: Path, more: tuple[str, ...]) -> None:
    program = compiled(tmp_path, LEVELS, "hls", "-O2")
    done = run(built("rankrun"), "-n", 4, "--pes", 2, "--method", "hls", *more, program)
    assert sorted(done.stdout.splitlines()) == [
        f"rank {rank} whole 104 part 12 mine 1 pointer 104" for rank in range(4)
    ]


CODE = """
#include <mpi.h>
#include <stdio.h>
#include <string.h>
__asm__(".text; .fill 1048576, 1, 0x90"); /* bytes of code: to compile as many would take longer than all the rest */
int data = 1;
int main(int argc, char **argv) {
    char line[200];
    int rank, nothing;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    data = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d data %d\\n", rank, data);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (int)strlen(line);
}
"""


def anonymous_bytes(pid: int) -> int:
    """Memory that is this process's own, in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no such line")


def test_shared_code_takes_no_memory(start_job: StartJob, tmp_path: Path) -> None:
    program = compiled(tmp_path, CODE, "pie", "-O0", "-g0")
    with ElfFile(str(program)) as elf:
        text = sum(segment.file_size for segment in elf.segments if not segment.flags & 2)
    ranks, taken, moved = 8, {}, {}
    for more in ((), ("--share-code",)):
        job = start_job(built("rankrun"), "-n", ranks, *more, program)
        job.wait_until_still()
        taken[more] = anonymous_bytes(job.pid)
        payload = json.loads(run(built("inspector"), "payload", job.pid, "--json").stdout)["payload"]
        moved[more] = sum(one["total"] for one in payload)
    saved = taken[()] - taken["--share-code",]
    assert abs(saved - ranks * text) < 0.1 * ranks * text, (saved, ranks * text)
    assert moved[()] - moved["--share-code",] == ranks * text


ROOTS = """
#include <mpi.h>
#include <rank_program.h>
#include <stdio.h>
struct globals { int rank; double field[4]; };
int main(int argc, char **argv) {
    struct globals mine = {0};
    int nothing;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine.rank);
    mine.field[2] = mine.rank + 0.5;
    rank_globals("globals", &mine);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mine.rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, mine.rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"""


def test_gathered_globals(start_job: StartJob, gdb: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path, ROOTS, "struct")
    job = start_job(built("rankrun"), "-n", 3, "--method", "struct", program)
    job.wait_until_still()
    done = run(built("inspector"), "globals", job.pid, "--json")
    assert "{rank = 2, field = {0, 0, 2.5, 0}}" in done.stdout, done.stdout
    script = """
        tell("none", ask("print $_rank_globals()"))
        ask("rank 1")
        tell("one", ask("output $_rank_globals()"))
        tell("each", ask("rank print $_rank_globals().rank"))
    """
    answers = Gdb(gdb, tmp_path).attach(script, job.pid)
    assert answers["one"] == "{rank = 1, field = {0, 0, 1.5, 0}}" and "no rank is selected" in answers["none"]
    assert answers["each"].splitlines() == ["0: 0", "1: 1", "2: 2"]


# ---- what a job leaves behind ----


def test_file_copies_are_removed(start_job: StartJob, tmp_path: Path, shared: Shared) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    program = compile_kinds("fs", tmp_path, shared)
    environment = {**os.environ, "TMPDIR": str(folder)}
    job = start_job(built("rankrun"), "-n", 3, "--method", "fs", program, environment=environment)
    job.wait_for("ready")
    (copies,) = folder.iterdir()
    assert sorted(path.name for path in copies.iterdir()) == ["rank0.so", "rank1.so", "rank2.so"]
    job.process.kill()
    job.process.wait()
    wait_until(lambda: not any(folder.iterdir()), f"{copies} was left behind")


def test_unique_symbols_are_told_where_they_are(start_job: StartJob, tmp_path: Path, shared: Shared) -> None:
    """Without -fno-gnu-unique the loader keeps one inline variable for all: the value that ranks use is shown."""
    held = hold(start_job, "fs", compile_kinds("none", tmp_path, shared))  # rankcxx --method fs would add that option
    values = {truth["inlined"].value for truth in held.truth.values()}
    assert len(values) == 1
    done = run(built("inspector"), "globals", held.job.pid, "simulation::inlined", "--json")
    assert f'"value": "{values.pop()}"' in done.stdout


def test_the_programs_environment_is_as_it_was(tmp_path: Path) -> None:
    ask = 'const char *text = getenv("GLIBC_TUNABLES"); puts(text ? text : "none"); MPI_Finalize();'
    source = "#include <stdlib.h>\n" + GUARDED.replace("MPI_Finalize();", ask)
    program = compiled(tmp_path, source, "pip")
    for value, shown in ((None, "none"), ("glibc.malloc.check=0", "glibc.malloc.check=0")):
        environment = {name: text for name, text in os.environ.items() if name != "GLIBC_TUNABLES"}
        if value is not None:
            environment["GLIBC_TUNABLES"] = value
        command = [str(built("rankrun")), "-n", "2", "--method", "pip", str(program), str(tmp_path / "mark")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.splitlines() == [shown, shown]


AT_START = """
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
int known; /* method swap refuses a program without one */
int main(int argc, char **argv) {
    known = errno;
    printf("%d\\n", known);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("method", METHODS)
def test_errno_is_0_at_the_start_of_every_rank(method: str, tmp_path: Path) -> None:
    """As in a process (C11, 7.5, paragraph 3)."""
    program = compiled(tmp_path, AT_START, method)
    done = run(built("rankrun"), "-n", 3, "--method", method, program)
    assert done.stdout.splitlines() == ["0"] * 3, done.stderr


def test_nothing_but_one_file_names_a_method() -> None:
    """A method is added by one file: nothing else of the runtime, and none of the tools, knows its name."""
    methods = ROOT / "runtime-hooks" / "embedded" / "methods"
    sources = [path for path in methods.parent.rglob("*.[ch]") if path.parent != methods]
    tools = [
        path
        for folder in ("pieglobalsfind", "gdbext", "lldbext", "inspector")
        for path in (ROOT / folder).rglob("*.py")
    ]
    analysis = ROOT / "inspector" / "analysis"
    judges = {
        analysis / "method_diagnoses.py",
        analysis / "runtime_diagnoses.py",
    }  # say how a program fares under each method
    decoders = ROOT / "pieglobalsfind" / "decoders"  # say which method another runtime was found to use
    for path in {*sources, *tools} - {*judges, *decoders.rglob("*.py")}:
        text = path.read_text()
        for method in METHODS:
            if method not in ("none", "struct", "pie", "tls"):  # words with other meanings, too
                assert f'"{method}"' not in text, path


# ---- what defeats a scan for pointers from the segment's start (docs/diagnoses.md) ----

PACKED = """
#include <mpi.h>
#include <stdio.h>
int data;
struct __attribute__((packed)) odd { char one; int *pointer; };
struct odd odd = {1, &data};
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    data = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d own %d\\n", rank, odd.pointer == &data && *odd.pointer == rank);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize(("mode", "own"), [("scan", 0), ("exact", 1)])
def test_a_pointer_at_an_odd_address(mode: str, own: int, tmp_path: Path) -> None:
    program = compiled(tmp_path, PACKED, "pie")
    done = run(built("rankrun"), "-n", 3, f"--rewrite={mode}", program)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} own {own}" for rank in range(3)]


LIBRARY = """
{more}
__thread int small = 1;
int counter = 5;
int *pointer = &counter;
int *count(void) {{ *pointer += small; return pointer; }}
"""
USER = """
#include <mpi.h>
#include <stdio.h>
int *count(void);
int main(int argc, char **argv) {
    int rank, *place = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn <= rank; turn++)
        place = count();
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d count %d\\n", rank, *place);
    MPI_Finalize();
    return 0;
}
"""


def test_a_writable_segment_that_begins_at_no_multiple_of_8(tmp_path: Path) -> None:
    """A small thread-local variable comes first in it: in a library, as the program itself would be refused."""
    unaligned = 0
    for functions in range(6):
        more = "".join(f"int more{n}(int x) {{ return x / {n + 3}; }}\n" for n in range(functions))
        (tmp_path / "library.c").write_text(LIBRARY.format(more=more))
        library = tmp_path / f"libcount{functions}.so"
        options = ["-shared", "-fPIC", "-O2", "-Wl,-z,norelro", "-Wl,-z,noseparate-code"]
        assert run("gcc", *options, tmp_path / "library.c", "-o", library).returncode == 0
        with ElfFile(str(library)) as elf:
            unaligned += any(segment.vaddr % 8 for segment in elf.segments if segment.flags & 2)
        words = [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}", f"-lcount{functions}"]
        (tmp_path / "user.c").write_text(USER)
        assert run(built("rankcc"), tmp_path / "user.c", "-o", tmp_path / "user", *words).returncode == 0
        done = run(built("rankrun"), "-n", 3, tmp_path / "user")
        assert sorted(done.stdout.splitlines()) == [f"rank {rank} count {6 + rank}" for rank in range(3)]
    assert unaligned


@pytest.mark.parametrize("method", [method for method in METHODS if method not in PRIVATE])
@pytest.mark.parametrize("name", sorted(path.name for path in HERE.iterdir()))
def test_mpi_programs_under_methods_that_leave_variables_shared(name: str, method: str, shared: Shared) -> None:
    """A program that has none to lose runs as under the other methods; of others the audit says so."""
    program = build(HERE / name, shared, f"--method={method}")
    judged = run(built("inspector"), "audit", program, "--method", method)
    if judged.returncode:
        assert "storage-not-private" in judged.stdout
        return
    done = run(built("rankrun"), "-n", 4, "--method", method, program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == mpich_lines(4, HERE / name, shared)
