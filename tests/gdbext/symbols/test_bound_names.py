"""Variables that a program and its library both have, of which all code uses one: the dynamic linker binds names so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.gdb.session import Session
from tests.support.running import built

RANKS = 3
HEADER = """
inline int counter = 1;
template <class T> struct Box { static int shared; };
template <class T> int Box<T>::shared = 5;
extern "C" int version;
extern "C" int get_version();
extern "C" int elsewhere;
static int own = 7;
"""
LIBRARY = """
#include "names.h"
int version = 203;
int get_version() {
    own++;
    return counter + Box<int>::shared + version + elsewhere; // here
}
"""
SECOND = """
extern "C" int elsewhere; // which the file that uses it only declares
int elsewhere = 400;
"""
PROGRAM = """
#include <mpi.h>
#include "names.h"
int version = 55;
int elsewhere = 500;
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    counter += 10 * rank;
    Box<int>::shared += 10 * rank;
    version += rank;
    elsewhere += rank;
    own += get_version();
    MPI_Finalize();
    return own == 0;
}
"""
VALUES = ("counter", "Box<int>::shared", "version", "elsewhere", "own")


@pytest.mark.parametrize("unique", ["-fgnu-unique", "-fno-gnu-unique"])
def test_a_library_s_names_mean_what_its_code_uses(session: Session, tmp_path: Path, unique: str) -> None:
    for name, source in (
        ("names.h", HEADER),
        ("library.cpp", LIBRARY),
        ("second.cpp", SECOND),
        ("program.cpp", PROGRAM),
    ):
        (tmp_path / name).write_text(source)
    flags = ["-g", "-O0", "-std=c++17", unique]
    for command in (
        ["g++", *flags, "-shared", "-fPIC", "library.cpp", "second.cpp", "-o", "libnames.so"],
        [str(built("rankcxx")), *flags, "program.cpp", "-o", "program", "-L.", "-lnames", f"-Wl,-rpath,{tmp_path}"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    line = next(number for number, text in enumerate(LIBRARY.splitlines(), 1) if "// here" in text)
    script = f"""
gdb.execute("break library.cpp:{line}")
gdb.execute("run")
answers = []
for stop in range({RANKS}):
    values = [value(name) for name in {VALUES!r}]
    computed = value("counter + Box<int>::shared + version + elsewhere")
    here = [value("(long)&" + name) for name in {VALUES[:4]!r}]
    gdb.execute("up")
    there = [value("(long)&" + name) for name in {VALUES[:4]!r}]
    gdb.execute("down")
    answers.append([value("$_rank"), here == there, *values, computed])
    gdb.execute("continue" if stop < {RANKS} - 1 else "finish")
tell("answers", answers)
tell("returned", value("$"))
"""
    answers = session.run(script, "--args", built("rankrun"), "-n", RANKS, tmp_path / "program")
    truth = [
        [rank, True, 1 + 10 * rank, 5 + 10 * rank, 55 + rank, 500 + rank, 8, 561 + 22 * rank] for rank in range(RANKS)
    ]
    assert sorted(answers["answers"]) == truth, answers.output
    assert answers["returned"] == truth[answers["answers"][-1][0]][-1]
