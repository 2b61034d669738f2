"""What `inspector globals` concludes of a variable, of a program that says itself which it writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.inspector.in_one_interpreter import in_one_interpreter
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import StartJob, built

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int differs;
int same;
int untouched = 42;
int *pointer = &untouched;  /* relocated: its bytes differ between copies, and nobody has written it */
int *moved;                 /* written: means the same on all ranks, and has to be private */
double large[1000];
void *of_libc = (void *)puts;
const int constant = 5;
int main(int argc, char **argv) {
    int nothing, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    differs = rank;
    same = 7;
    moved = &same;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("ready %p %d %g\\n", (void *)pointer, constant, large[argc]);
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return moved != 0 && of_libc != 0;
}
"""
VERDICTS = {
    "differs": "differs",
    "same": "equal everywhere",
    "untouched": "initial value",
    "pointer": "initial value",
    "moved": "equal but for addresses",
    "large": "initial value",
    "of_libc": "initial value",
    "constant": "initial value",
}
NEEDLESS = {"same": 4, "untouched": 4, "large": 8000, "of_libc": 8}


def compiled(method: str, folder: Path) -> Path:
    source, program = folder / "verdicts.c", folder / "verdicts"
    source.write_text(PROGRAM)
    command = [str(built("rankcc")), f"--method={method}", "-g", str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    return program


def inspected(pid: int, *options: str) -> list[dict[str, Any]]:
    command = [str(built("inspector")), "globals", str(pid), "--json", *options]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60)
    found: list[dict[str, Any]] = json.loads(done.stdout)["globals"]
    return found


@pytest.mark.parametrize("method", ["pie", "pip", "fs", "tpsl"])
def test_verdicts(method: str, start_job: StartJob, tmp_path: Path) -> None:
    program = compiled(method, tmp_path)
    job = start_job(built("rankrun"), "-n", 3, "--method", method, program)
    job.wait_until_still()
    found = {one["name"]: one for one in inspected(job.pid)}
    verdicts, needless = dict(VERDICTS), dict(NEEDLESS)
    if method == "tpsl":  # processes have one address for all, so that even the pointers' bytes are equal
        needless.update(pointer=8, moved=8)
        verdicts["moved"] = "equal everywhere"
    assert {name: one["verdict"] for name, one in found.items()} == verdicts
    if method == "pip":  # each rank has a libc of its own
        del needless["of_libc"]
    assert {name: one["needless"] for name, one in found.items() if one["needless"]} == needless
    unused = {one["name"] for one in inspected(job.pid, "--unused")}
    assert unused == {name for name, verdict in VERDICTS.items() if verdict == "initial value"}
    report = subprocess.run(
        [str(built("inspector")), "report", str(job.pid), "--json"], check=True, capture_output=True
    )
    assert json.loads(report.stdout)["needless"] == sum(needless.values())


@pytest.mark.parametrize("stripped", [False, True])
def test_without_debug_information(stripped: bool, start_job: StartJob, tmp_path: Path) -> None:
    """Symbols give names and sizes, values are bytes: also if it was stripped after its variables were kept.

    What is kept of a file is that of its content: a stripped program has another one.
    """
    source, program = tmp_path / "verdicts.c", tmp_path / "verdicts"
    source.write_text(PROGRAM)
    command = [str(built("rankcc")), *(["-g"] if stripped else []), str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    if stripped:
        subprocess.run([str(built("inspector")), "audit", str(program)], check=True, capture_output=True, timeout=60)
        subprocess.run(["strip", "--strip-debug", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 3, program)
    job.wait_until_still()
    found = {one["name"]: one for one in inspected(job.pid) if one["name"] in VERDICTS}
    bytes_alone = {**VERDICTS, "moved": "differs"}  # nobody knows that it is a pointer
    del bytes_alone["constant"]  # no mutable memory
    assert {name: one["verdict"] for name, one in found.items()} == bytes_alone
    assert {one["type"] for one in found.values()} == {"?"}
    assert [one["value"] for one in found["differs"]["groups"]] == ["0x0", "0x1", "0x2"]
    assert found["large"]["groups"] == [{"ranks": "0-2", "value": f"<8000 bytes: {'00 ' * 31}00...>"}]
    audit = subprocess.run(
        [str(built("inspector")), "pointers", str(job.pid)], capture_output=True, text=True, timeout=60
    )
    assert audit.stderr == f"inspector: {program} has no debug information: compile with -g\n"


def test_what_is_shared_is_not_private(start_job: StartJob, tmp_path: Path) -> None:
    source, program = tmp_path / "verdicts.c", tmp_path / "verdicts"
    source.write_text(PROGRAM)
    subprocess.run(
        [str(built("rankcc")), "--method=swap", "-g", str(source), "-o", str(program)], check=True, timeout=60
    )
    job = start_job(built("rankrun"), "-n", 3, "--method", "none", program)
    job.wait_until_still()
    found = inspected(job.pid)
    assert {one["verdict"] for one in found} == {"shared"} and not any(one["needless"] for one in found)


ROOTS = """
#include <mpi.h>
#include <rank_program.h>
#include <stdio.h>
#include <stdlib.h>
struct own { int rank; };
struct same { int seven; };
struct one { int alone; };
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct own *own = malloc(sizeof *own);
    struct one *one = calloc(1, sizeof *one);
    MPI_Bcast(&one, sizeof one, MPI_BYTE, 0, MPI_COMM_WORLD);
    struct same same = {7};
    own->rank = rank;
    rank_globals("struct own", own);
    rank_globals("struct same", &same);
    rank_globals("struct one", one);
    MPI_Recv(&rank, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return same.seven;
}
"""


def test_structs_of_globals(start_job: StartJob, tmp_path: Path) -> None:
    """The program has no variables of its own, and debug information; ranks share what they name at one address."""
    source, program = tmp_path / "roots.c", tmp_path / "roots"
    source.write_text(ROOTS)
    command = [str(built("rankcc")), "--method=struct", "-g", str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 3, "--method", "struct", program)
    job.wait_until_still()
    found = {one["type"]: one["verdict"] for one in inspected(job.pid)}
    assert found == {"struct own": "differs", "struct same": "equal everywhere", "struct one": "shared"}
    for _ in range(2):  # the second time out of the cache
        done = subprocess.run([str(built("inspector")), "globals", str(job.pid)], capture_output=True, text=True)
        assert "has no debug information" not in done.stdout + done.stderr


SHARED = """
#include <mpi.h>
#include <stdlib.h>
int *block;
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int *own = malloc(64);
    for (int i = 0; i < 3; i++, MPI_Barrier(MPI_COMM_WORLD))
        if (i == rank)
            block = own;
    MPI_Recv(&rank, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""


def test_what_is_shared_does_not_differ(start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """A pointer into the heap of one of those who share it is not another value to that one."""
    (tmp_path / "shared.c").write_text(SHARED)
    words = [str(built("rankcc")), "-g", "-o", str(tmp_path / "shared"), str(tmp_path / "shared.c")]
    subprocess.run(words, check=True, timeout=60)
    job = start_job(rankrun, "-n", 3, "--method", "tls", tmp_path / "shared")  # whose ranks have heaps
    job.wait_until_still()
    (block,) = [one for one in inspected(job.pid) if one["name"] == "block"]
    assert (block["verdict"], block["differs"]) == ("shared", False)
    assert [one["ranks"] for one in block["groups"]] == ["0-2"]
    assert block["groups"][0]["value"].startswith("<rank 2: heap+")


LIBRARY = "int tally_total;\nint tally(int by) { return tally_total += by; }\n"
USER = """
#include <mpi.h>
#include <stdio.h>
int tally(int by);
int own;
int main(int argc, char **argv) {
    int nothing, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    own = tally(rank + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""


@pytest.mark.parametrize(("method", "is_shared"), [("fs", True), ("pie", False)])
def test_a_library_that_ranks_share_is_named_and_no_defect(
    start_job: StartJob, rankrun: Path, tmp_path: Path, method: str, is_shared: bool
) -> None:
    """The calls into it go to the one library that there is, which is what the method promises."""
    (tmp_path / "tally.c").write_text(LIBRARY)
    (tmp_path / "user.c").write_text(USER)
    program = [str(built("rankcc")), "-g", "-o", "user", "user.c", "-L.", "-ltally", f"-Wl,-rpath,{tmp_path}"]
    for words in (["gcc", "-g", "-shared", "-fPIC", "-o", "libtally.so", "tally.c"], program):
        subprocess.run(words, check=True, timeout=60, cwd=tmp_path)
    job = start_job(rankrun, "-n", 3, "--method", method, tmp_path / "user")
    job.wait_for("ready")
    inspect = [str(built("inspector")), "report", str(job.pid)]
    said = subprocess.run(inspect, capture_output=True, text=True, check=True, timeout=60).stdout
    assert ("one for several ranks, whatever they write: tally_total in libtally.so\n" in said) == is_shared, said
    assert "privatization of" not in said and "JUMP_SLOT" not in said, said


def test_files_without_debug_information_among_others(start_job: StartJob, tmp_path: Path) -> None:
    """Their variables are told by symbols, as bytes, and others as what they are."""
    (tmp_path / "bare.c").write_text("int bare[2]; static int own = 7; int *touch(int by) { own = by; return bare; }\n")
    (tmp_path / "main.c").write_text(PROGRAM)
    rankcc = str(built("rankcc"))
    for words in (["-g0", "-c", "bare.c"], ["-g", "-c", "main.c"], ["bare.o", "main.o", "-o", "mixed"]):
        subprocess.run([rankcc, *words], check=True, timeout=60, cwd=tmp_path)
    job = start_job(built("rankrun"), "-n", 3, tmp_path / "mixed")
    job.wait_until_still()
    found = {one["name"]: one for one in inspected(job.pid)}
    assert set(found) >= {*VERDICTS, "bare", "own"} and not any(name.startswith("completed") for name in found)
    assert (found["own"]["type"], found["own"]["groups"]) == ("?", [{"ranks": "0-2", "value": "0x7"}])
    assert (found["bare"]["size"], found["bare"]["verdict"]) == (8, "initial value")
    assert found["differs"]["type"] == "int"
    report = subprocess.run(
        [str(built("inspector")), "report", str(job.pid)], capture_output=True, text=True, timeout=60
    )
    assert "its debug information does not describe: 2, shown as bytes" in " ".join(report.stdout.split())


def test_what_a_text_leaves_out_is_compared(start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "hidden.cpp", ranks=2)
    (done,) = in_one_interpreter([("globals", job.pid, "--json")])
    found = {load["name"]: load for load in json.loads(done.stdout)["globals"]}
    assert {name: one["verdict"] for name, one in found.items()} == dict.fromkeys(("deep", "many", "none"), "differs")
    texts = {name: [one["value"] for one in found[name]["groups"]] for name in found}
    assert texts["none"] == ["nan(0x400000)", "nan(0x400001)"]
    assert "{...}" in texts["deep"][0] and texts["deep"][1].endswith(f"(differs from rank 0 at {'.inner' * 26}.here)")
    assert texts["many"][0].endswith(" b99 = 0...}") and texts["many"][1].endswith(" (differs from rank 0 at .c99)")
