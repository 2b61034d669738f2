"""The list of a program's variables against what its source says: who writes each, and who hands out its address."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import BIN

SOURCES = {
    "c": """
#include <string.h>
int counter;
static volatile int hidden = 1;
int array[100];
int only_read = 3;
struct { int a, b; } pair;
int taken;
int *stored;
static double grid[10];
int cleared;
int chosen;
__thread int local;
static __thread long tally, waits;
__thread int room[8], lent;
__attribute__((noinline)) void step(void) { counter++; tally++; }
__attribute__((noinline)) void put(int n) { hidden = n; array[n] = hidden; local = n; room[n] = 2; waits += tally; }
__attribute__((noinline)) void through(int *p) { *p = 4; }
__attribute__((noinline)) int *give(void) { return &taken; }
__attribute__((noinline)) void loop(int n) { for (int i = 0; i < n; i++) { grid[i] = i * 2.0; if (i & 1) pair.b = i; } }
__attribute__((noinline)) void choose(int n) {
    switch (n) {
    case 1: counter = 2; break;
    case 2: counter = 5; break;
    case 5: chosen = n; break;
    case 7: pair.a = 3; break;
    case 8: pair.a = 4; break;
    }
}
static int table[32] __attribute__((used)), before[32] __attribute__((used));
__asm__(".text; .globl walk; .type walk, @function; walk: lea table+8(%rip), %rax; add $72, %rax;"
        "movl $1, -40(%rax); ret; .size walk, .-walk"); /* a pointer that has moved, and a place before it */
int few[3];
double pairs[8], rate;
__attribute__((noinline)) void short_array(int n) { few[n] += n; }
__attribute__((noinline)) void vectors(double a) { for (int i = 0; i < 8; i++) pairs[i] = a; }
__attribute__((noinline)) void back(int n) {
    double now = rate;
    if (__builtin_expect(n < 0, 0)) now *= n * 3.0; /* code after the return, which goes back */
    rate = now + 1;
}
int main(int c, char **v) {
    short_array(c);
    vectors(c);
    back(c);
    step();
    put(c);
    through(&taken);
    through(&lent);
    stored = give();
    loop(c);
    choose(c);
    memset(&cleared, c, sizeof cleared);
    return only_read + local + room[c] + pair.a + grid[c] > 4.0 + v[0][0];
}
""",
    "cpp": """
namespace mesh {
int cells;
struct Grid { static long total; void add(int n); };
long Grid::total;
void Grid::add(int n) { total += n; }
}
int main(int count, char **) { mesh::cells = count; mesh::Grid grid; grid.add(count); return mesh::cells; }
""",
    "f90": """
module state
  integer :: steps = 0
  real(8) :: heat(10)
contains
  subroutine advance(n)
    integer, intent(in) :: n
    steps = steps + n
    heat(n) = 1.5d0
  end subroutine
end module
program main
  use state
  call advance(command_argument_count() + 1)
  print *, steps, heat(1)
end program
""",
}
# By variable: those that write it, and those that pass, return or store its address
EXPECTED: dict[str, dict[str, tuple[list[str], list[str]]]] = {
    "c": {
        "counter": (["choose", "step"], []),
        "hidden": (["put"], []),
        "array": (["put"], []),
        "only_read": ([], []),
        "pair": (["choose", "loop"], []),
        "taken": ([], ["give", "main"]),
        "stored": (["main"], []),
        "grid": (["loop"], []),
        "chosen": (["choose"], []),
        "local": (["put"], []),
        "tally": (["step"], []),
        "waits": (["put"], []),
        "room": (["put"], []),
        "lent": ([], ["main"]),
        "table": (["walk"], []),
        "before": ([], []),
        "few": (["short_array"], []),
        "pairs": (["vectors"], []),
        "rate": (["back"], []),
    },
    "cpp": {"mesh::cells": (["main"], []), "mesh::Grid::total": (["mesh::Grid::add"], [])},
    "f90": {"state::steps": (["state::advance"], []), "state::heat": (["state::advance"], [])},
}
COMPILERS = {"c": "gcc", "cpp": "g++", "f90": "gfortran"}
AVX = "-O3 -mavx2 -fPIC -shared"
LIKE_AMPI = "-fPIC -shared -ftls-model=initial-exec -mno-tls-direct-seg-refs"
LEVELS = (
    *("-O0", "-O2", "-O0 -fPIC -shared", "-O1 -fPIC -shared", "-O2 -fPIC -shared -ftls-model=initial-exec"),
    *(f"-O0 {LIKE_AMPI}", f"-O2 {LIKE_AMPI}", AVX),
)


def build(folder: Path, language: str, level: str) -> Path:
    source = folder / f"program.{language}"
    source.write_text(SOURCES[language])
    program = folder / "program"
    words = [COMPILERS[language], "-g", *level.split(), str(source), "-o", str(program)]
    subprocess.run(words, check=True, timeout=60, cwd=folder)
    return program


def run(*words: object) -> str:
    done = subprocess.run(
        [str(BIN / "inspector"), "audit", *map(str, words)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows(program: Path) -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(run(program, "--json", "--variables"))["listed"]}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("language", SOURCES)
def test_writers(tmp_path: Path, language: str, level: str) -> None:
    found = rows(build(tmp_path, language, level))
    for name, (writers, takers) in EXPECTED[language].items():
        said = [one.replace("__state_MOD_", "state::") for one in found[name]["written_by"]]
        inlined = {"main", "MAIN__"} if language != "c" else set()
        assert set(writers) <= set(said) <= {*writers, *inlined}, f"{name} is written by {said}"
        if language == "c":
            assert found[name]["address_taken_by"] == takers, name
    if language == "c":
        assert {found[name]["storage"] for name in ("local", "tally", "waits", "room", "lent")} == {"thread-local"}
        # A small memset may be a store
        assert found["cleared"]["written_by"] == ["main"] or found["cleared"]["address_taken_by"] == ["main"]


def test_every_form_says_the_same(tmp_path: Path) -> None:
    program = build(tmp_path, "c", "-O0")
    found = rows(program)
    source = tmp_path / "program.c"
    header, *lines = (line.split("\t") for line in run(program, "--tsv").splitlines())
    assert header == ["name", "type", "bytes", "file", "line", "storage", "language", "written by", "address taken by"]
    table = {line[0]: line for line in lines}
    assert set(table) == set(found)
    for name, one in found.items():
        declared = SOURCES["c"].splitlines()[one["line"] - 1]
        assert name in declared and one["file"] == str(source)
        writers = "?" if one["written_by"] is None else ", ".join(one["written_by"])
        assert table[name][:5] == [name, one["type"], str(one["size"]), str(source), str(one["line"])]
        assert table[name][7] == writers
    notes = run(program, "--lines").splitlines()
    line = found["counter"]["line"]
    assert f"{source}:{line}: note: int counter: global, 4 bytes, written by choose, step" in notes
    assert len(notes) == len(found)
    shown = run(program, "--variables")
    assert all(name in shown for name in found)


def test_what_can_not_be_told(tmp_path: Path) -> None:
    build(tmp_path, "c", "-O0")
    plain = tmp_path / "plain"
    subprocess.run(["gcc", "-s", tmp_path / "program.c", "-o", plain], check=True, timeout=60)
    done = subprocess.run([BIN / "inspector", "audit", plain, "--lines"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "has no debug information: compile with -g" in done.stderr
