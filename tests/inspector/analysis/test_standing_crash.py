"""Crashes with a handler, and crashes that a process stands in: signal and place are those that the source makes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Optional

import jsonschema
import pytest

from inspector.analysis.report_schema import SCHEMA
from pieglobalsfind.stacks.frame import SIGNAL_HANDLER
from tests.support.cores import run_to_core
from tests.support.inspector.ranks import SOURCES
from tests.support.running import BIN, StartJob
from tests.support.sharing import Shared

SOURCE = SOURCES / "crash.c"
DIES = 3  # the rank that does, of four
GDB = ("-nx", "-q", "-batch", "-ex", "set debuginfod enabled off")


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if f"/* {mark} */" in line)


def report(*words: object) -> dict[str, Any]:
    command = [str(BIN / "inspector"), "report", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def core_of(folder: Path, *command: object) -> Path:
    """The core file that the kernel writes of a command that dies."""
    run_to_core(folder, *command)
    (core,) = folder.glob("core*")
    return core


@pytest.mark.parametrize(
    ("how", "handler", "signal", "diagnosis"),
    [
        ("null", "stays", "SIGSEGV", "null-pointer"),
        ("null", "aside", "SIGSEGV", "null-pointer"),
        ("stack", "aside", "SIGSEGV", "stack-overflow"),
        ("abort", "stays", "SIGABRT", None),
        ("free", "aside", "SIGABRT", "foreign-free"),
    ],
)
def test_a_rank_in_a_signals_handler_is_a_crash(
    how: str,
    handler: str,
    signal: str,
    diagnosis: Optional[str],
    tmp_path: Path,
    shared: Shared,
    rankcc: Path,
    rankrun: Path,
    start_job: StartJob,
) -> None:
    program = shared.copied([rankcc, "-g", SOURCE], tmp_path / "crash.so")
    job = start_job(rankrun, "-n", DIES + 1, program, how, handler)
    job.wait_for("stays")
    found = report(job.pid)
    (crash,) = found["crashes"]
    assert (found["verdict"]["kind"], found["verdict"]["ranks"]) == ("crash", str(DIES))
    assert (crash["signal"], crash["rank"]) == (signal, DIES)
    assert crash["handler"] == f"stays at crash.c:{line_of('stays')}"
    assert (crash["diagnosis"] or {"id": None})["id"] == diagnosis
    if how == "null":
        assert crash["address"] == "0x4"
    if how != "stack":
        assert crash["place"] == f"die at crash.c:{line_of(how)}"
    assert "it is still in the handler" in found["verdict"]["sentence"]


def test_a_stack_goes_on_from_a_handler(
    tmp_path: Path, shared: Shared, rankcc: Path, rankrun: Path, start_job: StartJob
) -> None:
    program = shared.copied([rankcc, "-g", SOURCE], tmp_path / "crash.so")
    job = start_job(rankrun, "-n", DIES + 1, program, "null", "stays")
    job.wait_for("stays")
    command = [str(BIN / "inspector"), "stacks", str(job.pid), "--rank", str(DIES), "--json"]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    (stack,) = json.loads(out)["stacks"]
    names = [call["function"] for call in stack["calls"]]
    at = names.index(SIGNAL_HANDLER)
    assert names[:at] == ["main", "die"]
    assert stack["calls"][at - 1]["line"] == line_of("null")
    assert names[at + 1] == "stays"
    assert stack["calls"][at + 1]["line"] == line_of("stays")
    assert "pause" in names[at + 2]


@pytest.mark.parametrize(
    ("how", "handler", "signal", "sentence"),
    [
        ("null", "aborts", "SIGSEGV", "address 0x4 (not mapped); its handler, aborts at crash.c:{}, ended it by"),
        ("null", "again", "SIGSEGV", ""),
        ("free", "again", "SIGABRT", "munmap_chunk(): invalid pointer"),
    ],
)
def test_a_core_file_of_a_handler_names_the_first_signal(
    how: str, handler: str, signal: str, sentence: str, tmp_path: Path, shared: Shared, rankcc: Path, rankrun: Path
) -> None:
    program = shared.copied([rankcc, "-g", SOURCE], tmp_path / "crash.so")
    core = core_of(tmp_path, rankrun, "-n", DIES + 1, program, how, handler)
    found = report(core)
    (crash,) = found["crashes"]
    assert (crash["signal"], crash["rank"], crash["place"]) == (signal, DIES, f"die at crash.c:{line_of(how)}")
    assert sentence.format(line_of("aborts")) in found["verdict"]["sentence"]


def test_a_fortran_program_that_dies_in_free(tmp_path: Path, shared: Shared, rankfort: Path, rankrun: Path) -> None:
    """As NPB BT-MZ does on stock AMPI (tests/charm/test_fortran_crash.py); libgfortran handles SIGABRT."""
    source = SOURCES / "frees.f90"
    program = shared.copied([rankfort, "-g", source], tmp_path / "frees.so")
    core = core_of(tmp_path, rankrun, "-n", DIES + 1, program)
    found = report(core)
    (crash,) = found["crashes"]
    line = next(number for number, text in enumerate(source.read_text().splitlines(), 1) if "! free" in text[1:])
    assert (crash["signal"], crash["rank"]) == ("SIGABRT", DIES)
    assert crash["place"] == f"frees::take_back at frees.f90:{line}"
    assert found["verdict"]["diagnoses"][0] == crash["diagnosis"]["id"] == "foreign-free"


@pytest.mark.parametrize("how", ["abort", "null"])
def test_a_debugger_that_holds_a_crash(
    how: str, tmp_path: Path, shared: Shared, rankcc: Path, rankrun: Path, gdb: Path
) -> None:
    """Linux tells nobody but the debugger which signal it is: abort() shows, a fault does not, and that is said."""
    program = shared.copied([rankcc, "-g", SOURCE], tmp_path / "crash.so")
    code = f"""python
import subprocess
words = {[str(BIN / "inspector"), "report", "--json"]!r}
with open({str(tmp_path / "report")!r}, "w") as file:
    subprocess.run([*words, str(gdb.selected_inferior().pid)], stdout=file)
end
"""
    (tmp_path / "in_gdb").write_text(code)
    words = [gdb, *GDB, "-ex", "run", "-x", tmp_path / "in_gdb", "--args", rankrun, "-n", DIES + 1, program, how]
    subprocess.run([*map(str, words)], capture_output=True, timeout=120, check=True)
    found = json.loads((tmp_path / "report").read_text())
    if how == "abort":
        (crash,) = found["crashes"]
        assert (crash["signal"], crash["rank"]) == ("SIGABRT", DIES)
        assert crash["place"] == f"die at crash.c:{line_of('abort')}"
        assert re.search(r"gdb \(process \d+\) holds the process", found["verdict"]["sentence"])
    else:
        assert found["crashes"] == []
        assert "whether a signal stopped it" in found["verdict"]["sentence"]
