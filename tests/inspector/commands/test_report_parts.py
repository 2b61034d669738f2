"""The parts of a report one at a time, who waits for whom, and perf's map, on a program whose source says it all."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from inspector.schemas import FIELDS
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, Job

RANKS = 7


@pytest.fixture
def ring(start_ranks: StartRanks) -> Job:
    return start_ranks(SOURCES / "ring.c", ranks=RANKS)


def inspect(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "inspector"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def answer(*words: object) -> Any:
    done = inspect(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ranks(ring: Job) -> None:
    calls = {one["rank"]: one["waiting"]["call"] for one in answer("ranks", ring.pid)["ranks"]}
    assert calls == {rank: "MPI_Recv" if rank < 5 else "MPI_Barrier" for rank in range(RANKS)}
    assert "MPI_Barrier" in inspect("ranks", ring.pid).stdout


def test_globals(ring: Job) -> None:
    found = {one["name"]: one for one in answer("globals", ring.pid)["globals"]}
    assert [group["value"] for group in found["own"]["groups"]] == [str(100 + rank) for rank in range(RANKS)]
    assert found["common_value"]["groups"] == [{"ranks": "0-6", "value": "5"}]
    differ = {one["name"] for one in answer("globals", ring.pid, "--differ")["globals"]}
    equal = {one["name"] for one in answer("globals", ring.pid, "--equal")["globals"]}
    assert {"own", "halves"} <= differ and "common_value" in equal and not differ & equal
    assert differ | equal == set(found)
    (halves,) = answer("globals", ring.pid, "hal*", "--rank", "2-4")["globals"]
    assert halves["groups"] == [{"ranks": "2-3", "value": "1"}, {"ranks": "4", "value": "2"}]
    nothing = inspect("globals", ring.pid, "nosuch")
    assert (nothing.returncode, nothing.stderr) == (1, "")
    how, *rest = nothing.stdout.split("\n")
    assert how.startswith("copied from the process while it stood still for ") and how.endswith("+00:00)")
    assert rest == ["", "Globals: no global matches 'nosuch'", ""]


def test_counts_are_of_the_variables_that_match(ring: Job) -> None:
    """`own` differs between all ranks, `halves` between ranks 3 and 4, and nothing differs on one rank."""
    one = inspect("globals", ring.pid, "own", "--rank", "4").stdout.splitlines()
    assert one[2] == "Globals: 1 on rank 4; verdicts are about all ranks" and "might be shared" not in one[3]
    both = inspect("globals", ring.pid, "[oh]*", "--rank", "2-3").stdout
    assert "Globals: 1 of 2 differs between ranks 2-3; 1 is equal; verdicts are about all ranks" in both
    assert "Globals: 2 of 2 differ between ranks; 0 are equal\n" in inspect("globals", ring.pid, "[oh]*").stdout
    among_all = inspect("globals", ring.pid, "[oh]*", "--rank", "2-3", "--differ").stdout
    assert "Globals: 1 of 2 differs between ranks 2-3; 1 is equal" in among_all and "halves" not in among_all
    none = inspect("globals", ring.pid, "common_value", "--differ")
    assert none.returncode == 1 and "no global matches 'common_value' --differ" in none.stdout


def test_the_other_parts_are_the_reports(ring: Job) -> None:
    report = answer("report", ring.pid)
    pointers = answer("pointers", ring.pid)
    assert {name: value for name, value in pointers.items() if name not in FIELDS} == report["pointers"]
    assert answer("payload", ring.pid)["payload"] == report["payload"]
    assert answer("globals", ring.pid)["globals"] == report["globals"]
    assert "stack used" in inspect("payload", ring.pid).stdout and "proven" in inspect("pointers", ring.pid).stdout


def test_waits(ring: Job) -> None:
    found = answer("waits", ring.pid)
    assert found["waits"] == [{"rank": rank, "for": peer} for rank, peer in enumerate((1, 2, 0, 0))] + [
        {"rank": 5, "for": 4},
        {"rank": 6, "for": 4},  # which sends to it in the barrier's second step
    ]
    assert found["cycles"] == [[0, 1, 2]] and found["any"] == "4"
    (barrier,) = found["collectives"]
    assert (barrier["call"], barrier["inside"], barrier["lacking"]) == ("MPI_Barrier", "5-6", "0-4")
    assert found["standstill"] == "0-6"
    said = inspect("waits", ring.pid).stdout
    assert "standstill: ranks 0-6, all that have not exited, wait; only a message" in said
    assert "deadlock: ranks 0-2 wait for one another, 0 -> 1 -> 2 -> 0" in said
    assert "MPI_Barrier: entered by 5-6; missing: 0-4" in said


def test_why_two_ranks_differ(ring: Job) -> None:
    done = inspect("why-different", 3, 5, ring.pid, "--json")
    found = json.loads(done.stdout)
    assert [call["function"] for call in found["shared"]] == []
    assert [[call["function"] for call in one] for one in found["apart"]] == [
        ["main", "receive", "MPI_Recv"],
        ["main", "MPI_Barrier"],
    ]
    assert {one["name"]: one["values"] for one in found["variables"]} == {"own": ["103", "105"], "halves": ["1", "2"]}
    same = json.loads(inspect("why-different", 1, 0, ring.pid, "--json").stdout)
    assert [call["function"] for call in same["shared"]] == ["main", "receive", "MPI_Recv"] and same["apart"] == [
        [],
        [],
    ]
    assert [one["name"] for one in same["variables"]] == ["own"]
    assert "rank 3" in inspect("why-different", 3, 5, ring.pid).stdout
    assert "there is no rank -1" in inspect("why-different", 0, -1, ring.pid).stderr
    for words in ((3, 3, ring.pid), (0, 99, ring.pid), (0, 1, "nofile"), (ring.pid, 3, 0)):
        refused = inspect("why-different", *words)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert refused.stderr.endswith(f"ranks come before the process: inspector why-different 3 0 {ring.pid}\n")


def test_words_may_follow_options(ring: Job) -> None:
    """As in `globals PID --differ PATTERN`."""
    before, after = inspect("globals", ring.pid, "own", "--differ"), inspect("globals", ring.pid, "--differ", "own")
    (_, *first), (_, *second) = before.stdout.splitlines(), after.stdout.splitlines()
    assert before.returncode == 0 and first == second and "own" in after.stdout, after.stderr
    assert "unrecognized arguments: more" in inspect("globals", ring.pid, "--differ", "own", "more").stderr


def functions_of(program: Path) -> dict[str, tuple[int, int]]:
    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = [
            symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"]
        ]
        return {one.name: (one["st_value"], one["st_size"]) for one in symbols}


def test_perf_map(ring: Job, tmp_path: Path) -> None:
    """Every function of the file in every copy, by an independent reader of ELF files."""
    place = tmp_path / "perf.map"
    assert inspect("perfmap", ring.pid, "-o", place).returncode == 0
    form = re.compile(r"([0-9a-f]+) ([0-9a-f]+) (.+) \[rank (\d+)\]")
    lines = [form.fullmatch(line) for line in place.read_text().splitlines()]
    assert lines and all(lines)
    starts: dict[tuple[str, int], tuple[int, int]] = {}
    for match in lines:
        assert match is not None
        starts[match.group(3), int(match.group(4))] = int(match.group(1), 16), int(match.group(2), 16)
    wanted = functions_of(tmp_path / "ring.so")
    for rank in range(RANKS):
        shifts = {starts[name, rank][0] - vaddr for name, (vaddr, _) in wanted.items()}
        assert len(shifts) == 1 and all(starts[name, rank][1] == size for name, (_, size) in wanted.items())
    merged = tmp_path / "merged.map"
    assert inspect("perfmap", ring.pid, "--merge", "-o", merged).returncode == 0
    assert "[rank" not in merged.read_text() and " main\n" in merged.read_text()


def test_a_perf_map_without_anything_says_why(start_ranks: StartRanks, tmp_path: Path) -> None:
    job = start_ranks(SOURCES / "ring.c", ranks=RANKS)
    program, place = tmp_path / "ring.so", tmp_path / "map"
    program.rename(tmp_path / "elsewhere")
    done = inspect("perfmap", job.pid, "-o", place)
    why = f"inspector: the map lacks functions, the file {program} is not there any more: put it back\n"
    assert (done.returncode, done.stdout, done.stderr, place.exists()) == (1, "", why, False)
    job = start_ranks(SOURCES / "ring.c", "--method", "none", ranks=RANKS)
    done = inspect("perfmap", job.pid, "-o", place)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "inspector: there is nothing to map: ranks of method none have no copies of code\n"


@pytest.mark.skipif(shutil.which("perf") is None, reason="this machine has no perf")
def test_perf_names_functions_in_copies(start_ranks: StartRanks, tmp_path: Path) -> None:
    job = start_ranks(SOURCES / "waits.c", loops=True)
    place = Path(f"/tmp/perf-{job.pid}.map")
    try:
        assert inspect("perfmap", job.pid).returncode == 0
        data = tmp_path / "perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-o", str(data), "-p", str(job.pid), "--", "sleep", "0.5"]
        recorded = subprocess.run(record, capture_output=True, text=True, timeout=60)
        if recorded.returncode:
            pytest.skip(f"perf may not record here: {recorded.stderr.strip()[:200]}")
        report = ["perf", "report", "--stdio", "-i", str(data)]
        said = subprocess.run(report, capture_output=True, text=True, timeout=60).stdout
        if not re.search(r"^ +\d", said, re.MULTILINE):
            pytest.skip("perf took no samples here")
        assert re.search(r"turn \[rank 3\]", said), said[-2000:]
    finally:
        place.unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["ranks", "globals", "pointers", "payload", "waits", "perfmap"])
@pytest.mark.parametrize("target", ["99999999", "nofile", "1"])
def test_bad_targets(command: str, target: str) -> None:
    done = inspect(command, target)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("inspector: ")
