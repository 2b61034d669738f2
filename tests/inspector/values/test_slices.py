"""Elements of arrays, containers and allocatables, as `inspector globals` chooses them; known values are the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.values.slices import parse
from tests.support.inspector.globals_by_name import run, values
from tests.support.inspector.ranks import StartRanks
from tests.support.running import Job

RANKS = 12
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int table[3][4];
double residual;
float grid[20];
int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    residual = rank / 8.0;
    for (int i = 0; i < 20; i++)
        grid[i] = 10 * i + rank;
    for (int i = 0; i < 12; i++)
        table[i / 4][i % 4] = 100 * rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    return MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
"""


@pytest.fixture
def job(start_ranks: StartRanks, tmp_path: Path) -> Job:
    source = tmp_path / "numbers.c"
    source.write_text(PROGRAM)
    return start_ranks(source, ranks=RANKS)


def test_elements_of_arrays(job: Job) -> None:
    grid = values(job.pid, "grid[3:6]")
    assert list(grid) == ["grid[3]", "grid[4]", "grid[5]"]
    assert grid["grid[4]"]["statistics"]["minimum"] == 40
    assert grid["grid[4]"]["statistics"]["maximum"] == 51
    table = values(job.pid, "table[2][1:3]", "--rank", "5")
    assert {name: one["groups"] for name, one in table.items()} == {
        "table[2][1]": [{"ranks": "5", "value": "509"}],
        "table[2][2]": [{"ranks": "5", "value": "510"}],
    }
    for words, reason in (
        ("grid[18:22]", "grid has elements 0 to 19"),
        ("grid[1][2]", "grid has 1 dimensions"),
        ("residual[1]", "residual has no elements by number"),
    ):
        done = run(job.pid, words)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr


CONTAINERS = """
#include <array>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>
#include <mpi.h>
struct Cell { int id; double value; };
std::array<std::array<int, 4>, 3> fixed;
std::vector<double> grid;
std::vector<Cell> cells;
std::vector<std::vector<int>> rows;
std::vector<std::string> names;
std::deque<long> queue;
std::vector<bool> flags(9);
std::vector<int> uneven;
int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5000; i++) {
        grid.push_back(10 * i + rank);
        queue.push_back(i);
        queue.push_back(1000 * rank + i);
        queue.pop_front();
        cells.push_back({i, rank * 0.5});
    }
    for (int i = 0; i < 12; i++)
        fixed[i / 4][i % 4] = 100 * rank + i;
    for (int i = 0; i < 6; i++) {
        rows.emplace_back(i + 1, 10 * rank + i);
        names.push_back("name " + std::to_string(i));
    }
    uneven.assign(rank + 1, 7);
    flags[rank] = flags[8] = true;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    return MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
"""
FORTRAN = """
module state
  real(8), allocatable :: field(:, :), never(:)
  integer, pointer :: window(:)
  integer, target :: store(20)
  integer :: fixed(2:4, 3)
end module
program main
  use mpi
  use state
  integer :: rank, word, code, i, j
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  allocate(field(0:5, -1:3))
  do j = -1, 3
    do i = 0, 5
      field(i, j) = 100 * rank + 10 * i + j
    end do
  end do
  store = [(rank + i, i = 1, 20)]
  fixed = reshape([(100 * rank + i, i = 1, 9)], [3, 3])
  window => store(2:20:3)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) then
    print '(a)', 'ready'
    flush(6)
  end if
  call MPI_Recv(word, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
end program
"""


def by_rank(value: dict[str, Any]) -> list[str]:
    """Each rank's value."""
    found: dict[int, str] = {}
    for group in value["groups"]:
        for part in group["ranks"].split(","):
            first, _, last = part.partition("-")
            found.update(dict.fromkeys(range(int(first), int(last or first) + 1), group["value"]))
    return [found[rank] for rank in sorted(found)]


@pytest.mark.parametrize("method", ["pie", "fs"])  # with a heap for each rank, and with libc's
def test_elements_of_containers(start_ranks: StartRanks, tmp_path: Path, method: str) -> None:
    source = tmp_path / "containers.cpp"
    source.write_text(CONTAINERS)
    pid = start_ranks(source, "--method", method, ranks=3).pid
    grid = values(pid, "grid[4000:4003]")
    assert {name: by_rank(one) for name, one in grid.items()} == {
        f"grid[{i}]": [str(10 * i + rank) for rank in range(3)] for i in range(4000, 4003)
    }
    assert {one["type"] for one in grid.values()} == {"double"}
    queue = values(pid, "queue[:2]") | values(pid, "queue[4999]")
    assert {name: by_rank(one) for name, one in queue.items()} == {
        "queue[0]": ["2500"] * 3,
        "queue[1]": [str(1000 * rank + 2500) for rank in range(3)],
        "queue[4999]": [str(1000 * rank + 4999) for rank in range(3)],
    }
    assert by_rank(values(pid, "fixed[2][1]")["fixed[2][1]"]) == ["9", "109", "209"]
    assert by_rank(values(pid, "rows[3:4][3]")["rows[3][3]"]) == ["3", "13", "23"]
    assert by_rank(values(pid, "cells[70]")["cells[70]"]) == [
        f"{{id = 70, value = {text}}}" for text in ("0", "0.5", "1")
    ]
    (name,) = values(pid, "names[5]").values()
    assert name["groups"] == [{"ranks": "0-2", "value": '"name 5"'}]
    assert by_rank(values(pid, "uneven[2]")["uneven[2]"]) == ["<it has 1 element>", "<it has 2 elements>", "7"]
    flags = values(pid, "flags[:2]") | values(pid, "flags[8]")
    assert {name: by_rank(one) for name, one in flags.items()} == {
        "flags[0]": ["true", "false", "false"], "flags[1]": ["false", "true", "false"], "flags[8]": ["true"] * 3,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["pie", "fs"])
def test_open_ends_reach_to_the_longest_of_all_ranks(start_ranks: StartRanks, tmp_path: Path, method: str) -> None:
    source = tmp_path / "containers.cpp"
    source.write_text(CONTAINERS)
    pid = start_ranks(source, "--method", method, ranks=3).pid
    uneven = values(pid, "uneven[1:]")
    assert {name: by_rank(one) for name, one in uneven.items()} == {
        "uneven[1]": ["<it has 1 element>", "7", "7"], "uneven[2]": ["<it has 1 element>", "<it has 2 elements>", "7"],
    }  # fmt: skip
    assert [list(values(pid, f"{name}[4998:]")) for name in ("grid", "queue")] == [
        [f"{name}[4998]", f"{name}[4999]"] for name in ("grid", "queue")
    ]
    assert list(values(pid, "flags[7:]")) == ["flags[7]", "flags[8]"]
    for words, reason in (
        ("grid[:]", "these are 5,000 elements"),
        ("rows[3][2:]", "rows has a length of its own on each rank: name the first and the last element of each"),
        ("grid[5:3]", "grid has no elements 5 to 2"),
        ("grid[0][1]", "grid has 1 dimensions"),
        ("rows[0:900][0:900]", "these are 810,000 elements"),
        ("flags[3][1]", "flags has 1 dimensions"),
    ):
        done = run(pid, words)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr


def test_elements_of_fortrans_arrays(start_ranks: StartRanks, tmp_path: Path) -> None:
    source = tmp_path / "fields.f90"
    source.write_text(FORTRAN)
    pid = start_ranks(source, ranks=3).pid
    field = values(pid, "state::field(4:5,-1)")
    assert {name: by_rank(one) for name, one in field.items()} == {
        f"state::field({i},-1)": [str(100 * rank + 10 * i - 1) for rank in range(3)] for i in (4, 5)
    }
    fixed = values(pid, "state::fixed(4,2:3)")
    assert {name: by_rank(one) for name, one in fixed.items()} == {
        "state::fixed(4,2)": ["6", "106", "206"], "state::fixed(4,3)": ["9", "109", "209"],
    }  # fmt: skip
    corner = values(pid, "state::field(5:,:0)")
    assert list(corner) == ["state::field(5,-1)", "state::field(5,0)"]
    assert by_rank(corner["state::field(5,0)"]) == ["50", "150", "250"]
    assert by_rank(values(pid, "state::window(2)")["state::window(2)"]) == ["5", "6", "7"]
    (never,) = values(pid, "state::never(1)").values()
    assert never["groups"] == [{"ranks": "0-2", "value": "<not allocated>"}]
    beyond = values(pid, "state::field(6,0)")["state::field(6,0)"]
    assert beyond["groups"] == [{"ranks": "0-2", "value": "<it has elements 0 to 5>"}]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("grid[3]", [(3, 3)]),
        ("grid[3:10]", [(3, 9)]),
        ("grid[:2][5:]", [(None, 1), (5, None)]),
        ("m::field(2:4,1)", [(2, 4), (1, 1)]),
        ("grid", None),
        ("app::work(int)::calls", None),
        ("[ab]*", None),
    ],
)
def test_what_chooses_elements(text: str, spans: Any) -> None:
    found = parse(text)
    assert (found and [(span.first, span.last) for span in found.spans]) == spans
