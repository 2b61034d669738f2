"""`inspector report` on real jobs: what it must say of programs whose globals the test knows, and of bad input."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inspector.analysis.report_schema import NAME, SCHEMA
from inspector.terminal.text import shortened
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import Job, StartJob

RANKS = 4


def run(inspector: Path, *arguments: object, columns: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"COLUMNS": columns} if columns else {})}
    command = [str(inspector), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def report(inspector: Path, job: Job) -> dict[str, Any]:
    done = run(inspector, "report", job.pid, "--json")
    assert (done.stderr, done.returncode) == ("", 0)
    answer: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(answer, SCHEMA)
    return answer


def groups(answer: dict[str, Any], name: str) -> list[tuple[str, str]]:
    (found,) = [one for one in answer["globals"] if one["name"] == name]
    return [(one["ranks"], one["value"]) for one in found["groups"]]


def each(text: str) -> list[tuple[str, str]]:
    return [(str(rank), text.format(rank=rank, ten=10 * rank, half=f"{rank / 2:g}")) for rank in range(RANKS)]


def test_values_by_rank(inspector: Path, start_ranks: StartRanks) -> None:
    answer = report(inspector, start_ranks(SOURCES / "ranks.c", ranks=RANKS))
    assert answer["schema"] == NAME
    assert answer["method"] == "pie"
    assert groups(answer, "mine") == each("{rank}")
    assert groups(answer, "parity") == [("0,2", "0"), ("1,3", "1")]
    assert groups(answer, "same") == [("0-3", "5")]
    assert groups(answer, "kept") == each("{{0, {ten}, 0}}")
    assert groups(answer, "pair") == each("{{rank = {rank}, half = {half}}}")
    assert groups(answer, "to_mine") == [("0-3", "<mine>")]
    assert groups(answer, "to_odd") == [("0,2", "<same>"), ("1,3", "<mine>")]
    assert groups(answer, "label") == each('"rank {rank}' + r"\000" * 9 + '"')
    assert groups(answer, "step::calls") == [(str(rank), str(100 + rank)) for rank in range(RANKS)]
    assert groups(answer, "greeting") == [("0-3", '"hello"')]
    assert all(value.startswith("<heap+0x") for _, value in groups(answer, "block"))


def test_fortran(inspector: Path, start_ranks: StartRanks) -> None:
    answer = report(inspector, start_ranks(SOURCES / "fields.f90", ranks=3))
    assert groups(answer, "state::mine") == each("{rank}")[:3]
    assert groups(answer, "fill::calls") == [("0", "100"), ("1", "101"), ("2", "102")]
    assert groups(answer, "weight") == each("{half}")[:3]
    assert groups(answer, "shared") == [("0-2", "7")]
    assert groups(answer, "state::title") == each("'rank {rank}  '")[:3]
    assert groups(answer, "state::view") == [("0-2", "(1, 2, 3)")]
    assert [value for _, value in groups(answer, "state::field")] == [
        "((9, 0))",
        "((9, 1) (1, 1))",
        "((9, 2) (2, 2) (2, 2))",
    ]
    (shared,) = [one for one in answer["globals"] if one["name"] == "shared"]
    assert (shared["storage"], shared["type"]) == ("common", "integer(kind=4)")


def test_what_differs_beyond_what_is_shown(inspector: Path, start_ranks: StartRanks) -> None:
    answer = report(inspector, start_ranks(SOURCES / "ranks.c", ranks=RANKS))
    large, listed = groups(answer, "large"), groups(answer, "listed")
    assert [ranks for ranks, _ in large] == ["0-1,3", "2"]
    assert large[1][1] == large[0][1] + " (differs from rank 0 at [390])"
    assert [ranks for ranks, _ in listed] == ["0-2", "3"], "pointers into the own image are the same"
    assert listed[1][1].endswith("(differs from rank 0 at [250].where)")
    assert [ranks for ranks, _ in groups(answer, "padded")] == ["0-3"], "padding is not a value"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("{1, 2}", "{1, 2}"),
        ("x" * 30, "x" * 20 + "..."),
        ("x" * 30 + " (differs from rank 0 at [390])", "x" * 20 + "... (differs from rank 0 at [390])"),
        ("x (differs from rank " + "9" * 30, "x (differs from rank..."),
    ],
)
def test_what_is_cut_says_where_it_differs(value: str, shown: str) -> None:
    assert shortened(value, 20) == shown


def test_declarations(inspector: Path, start_ranks: StartRanks) -> None:
    answer = report(inspector, start_ranks(SOURCES / "ranks.c", ranks=RANKS))
    lines = (SOURCES / "ranks.c").read_text().splitlines()
    found = {one["name"]: one for one in answer["globals"]}
    assert (found["pair"]["type"], found["pair"]["size"], found["pair"]["storage"]) == ("struct pair", 16, "global")
    assert (found["kept"]["type"], found["kept"]["size"], found["kept"]["storage"]) == ("int [3]", 12, "file static")
    assert found["step::calls"]["storage"] == "function static"
    assert lines[found["mine"]["line"] - 1] == "int mine = -1;"
    assert found["mine"]["file"].endswith("ranks.c")


def test_ranks_and_what_they_wait_for(inspector: Path, start_ranks: StartRanks) -> None:
    answer = report(inspector, start_ranks(SOURCES / "ranks.c", ranks=RANKS))
    assert [one["rank"] for one in answer["ranks"]] == list(range(RANKS))
    assert {one["tier"] for one in answer["ranks"]} == {"registry"}
    assert {one["state"] for one in answer["ranks"]} == {"blocked"}
    waiting = [one["waiting"] for one in answer["ranks"]]
    assert [(one["call"], one["peer"], one["tag"]) for one in waiting] == [
        ("MPI_Recv", (rank + 1) % RANKS, 70 + rank) for rank in range(RANKS)
    ]


def test_payload_adds_up(inspector: Path, start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "ranks.c", "--stack-size", "1048576", ranks=RANKS)
    for one in report(inspector, job)["payload"]:
        parts = {name: size for name, size in one.items() if name not in ("rank", "total", "notes")}
        assert one["total"] == sum(parts.values())
        assert parts["stack_used"] + parts["stack_unused"] == 1048576
        assert 0 < parts["stack_used"] < 65536
        assert parts["heap_used"] >= 1000
        assert parts["code"] > 0
        assert one["notes"] == []


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_text_fits_and_is_harmless(inspector: Path, start_ranks: StartRanks, columns: str) -> None:
    job = start_ranks(SOURCES / "ranks.c", ranks=RANKS)
    done = run(inspector, "report", job.pid, columns=columns)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout, "no colours in a pipe, no escapes of the target"
    assert max(map(len, done.stdout.splitlines())) <= int(columns)
    if columns == "200":
        assert "to_odd" in done.stdout
        assert "greeting" not in done.stdout, "what is equal everywhere is only counted"


def test_the_job_is_not_stopped(inspector: Path, start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "ranks.c", ranks=RANKS)
    report(inspector, job)
    status = Path(f"/proc/{job.pid}/status").read_text()
    assert "TracerPid:\t0" in status
    assert "stopped" not in status


def test_a_core_says_the_same(inspector: Path, start_ranks: StartRanks, tmp_path: Path) -> None:
    job = start_ranks(SOURCES / "ranks.c", ranks=RANKS)
    live = report(inspector, job)
    subprocess.run(["gcore", "-o", "core", str(job.pid)], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    done = run(inspector, "report", tmp_path / f"core.{job.pid}", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    core = json.loads(done.stdout)
    jsonschema.validate(core, SCHEMA)
    for part in ("method", "ranks", "globals", "pointers", "payload"):
        assert core[part] == live[part]


def test_a_program_without_debug_information(inspector: Path, start_ranks: StartRanks, tmp_path: Path) -> None:
    job = start_ranks(SOURCES / "ranks.c", ranks=RANKS)
    binary = tmp_path / "ranks.so"
    stripped = binary.with_name("stripped.so")
    subprocess.run(["strip", "-g", "-o", str(stripped), str(binary)], check=True, timeout=60)
    stripped.replace(binary)  # the same build-id, other contents
    answer = report(inspector, job)
    assert groups(answer, "mine") == [(str(rank), hex(rank)) for rank in range(RANKS)]
    assert groups(answer, "same") == [("0-3", "0x5")]
    assert any("no debug information" in one for one in answer["warnings"])
    assert {one["verdict"] for one in answer["pointers"]["counts"]} <= {"proven", "untyped"}


def test_another_file_in_its_place(inspector: Path, start_ranks: StartRanks, tmp_path: Path) -> None:
    job = start_ranks(SOURCES / "ranks.c", ranks=RANKS)
    (tmp_path / "ranks.so").unlink()
    subprocess.run(
        ["gcc", "-g", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", "ranks.so"], cwd=tmp_path, check=True
    )
    answer = report(inspector, job)
    if os.geteuid() == 0:  # whom the kernel lets read the file that was deleted
        assert groups(answer, "mine") == [(str(rank), str(rank)) for rank in range(RANKS)]
        return
    assert answer["globals"] == []
    assert any("the target runs" in warning for warning in answer["warnings"])


def fails(done: subprocess.CompletedProcess[str], word: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert word in done.stderr


def test_no_such_process(inspector: Path) -> None:
    fails(run(inspector, "report", 2**22 + 1), "process")


def test_no_such_file(inspector: Path, tmp_path: Path) -> None:
    fails(run(inspector, "report", tmp_path / "none"), "none")


def test_not_virtualized(inspector: Path, start_job: StartJob) -> None:
    fails(run(inspector, "report", start_job("sleep", "60").pid), "rank")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no core at all\n" * 100])
def test_no_core_file(inspector: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "core").write_bytes(content)
    fails(run(inspector, "report", tmp_path / "core"), "core")
