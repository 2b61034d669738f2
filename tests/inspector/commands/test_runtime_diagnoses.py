"""The audit by the rules of one runtime: found from the file or the job, or named by --for.

What each runtime does with such programs was run on it: docs/diagnoses.md says how.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Optional

import pytest

from inspector.analysis.runtime_diagnoses import of_job
from pieglobalsfind.model import Evidence, RankTable
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN

SOURCE = """
#include <string.h>
static __thread int before = 1;
int data = 5;
int {main}(int count, char **words) {{ before++; return strtok(words[0], " ") != 0 && data; }}
"""
CATCH = 'extern "C" int AMPI_Main(int c, char **) { try { throw c; } catch (int e) { return e; } }\n'
AMPI, SMPI = ["pie", "pip", "fs", "tls", "swap", "none"], ["fs", "mmap", "none"]


def build(folder: Path, main: str, *options: str) -> Path:
    (folder / "program.c").write_text(SOURCE.format(main=main))
    words = ["gcc", "-g", "-shared", "-fPIC", "-o", "program.so", "program.c", *options]
    subprocess.run(words, cwd=folder, check=True, timeout=60)
    return folder / "program.so"


def for_simgrid(folder: Path) -> Path:
    """A program that needs a library of SimGrid's name."""
    (folder / "empty.c").write_text("int simgrid;\n")
    library = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libsimgrid.so.3", "-o", "libsimgrid.so", "empty.c"]
    subprocess.run(library, cwd=folder, check=True, timeout=60)
    return build(folder, "main", "-L.", "-Wl,--no-as-needed", "-lsimgrid")


def audit(target: object, *options: str) -> Any:
    done = subprocess.run(
        [str(BIN / "inspector"), "audit", str(target), "--json", *options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def diagnoses(found: Any) -> dict[str, dict[str, str]]:
    """By method: ids with their severity."""
    return {one["method"]: {each["id"]: each["severity"] for each in one["diagnoses"]} for one in found["methods"]}


def test_a_program_of_ampi(tmp_path: Path) -> None:
    found = audit(build(tmp_path, "AMPI_Main"))
    assert found["runtime"] == "ampi"
    by_method = diagnoses(found)
    assert list(by_method) == AMPI
    assert by_method["pie"]["thread-local-under-pieglobals"] == "lost"
    assert "thread-local-in-byte-copy" not in by_method["pie"]
    assert [method for method in AMPI if "hidden-libc-state" not in by_method[method]] == ["pip"]
    verdicts = {one["method"]: one["verdict"] for one in found["methods"]}
    assert verdicts == {
        "pie": "not all private",
        "pip": "private",
        "fs": "private, at a risk",
        "tls": "not all private",
        "swap": "not all private",
        "none": "not all private",
    }


def test_the_loader_of_ampi_leads_to_the_program(tmp_path: Path) -> None:
    """AMPI's compilers put the user's code beside a loader, which alone has the name that the user gave."""
    source, loader = tmp_path / "loader.cpp", tmp_path / "solver"
    source.write_text("void *AMPI_FuncPtr_Unpack_Locate(void *at) { return at; } int main() {}\n")
    subprocess.run(["g++", "-rdynamic", "-o", loader, source], check=True, timeout=60)
    words = [str(BIN / "inspector"), "audit", str(loader)]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"inspector: {loader} is AMPI's loader, and its program {loader}.user.so is not")
    program = build(tmp_path, "AMPI_Main").rename(tmp_path / "solver.user.so")
    found = audit(loader)
    assert found["program"] == str(program)
    assert {**found, "taken": ""} == {**audit(program), "taken": ""}


@pytest.mark.parametrize(("ranks", "severity"), [(11, None), (12, "risk"), (15, "risk"), (16, "refused")], ids=str)
def test_how_many_ranks_ampi_has_in_a_process(tmp_path: Path, ranks: int, severity: Optional[str]) -> None:
    found = audit(build(tmp_path, "AMPI_Main"), "--method", "pip", "--ranks", str(ranks))
    assert diagnoses(found)["pip"].get("too-many-namespaces") == severity
    (plain,) = audit(tmp_path / "program.so", "--method", "pip")["methods"]
    assert plain["notes"] == ["at most 11 ranks in a process, or 15 with GLIBC_TUNABLES=glibc.rtld.nns=16"]


@pytest.mark.parametrize(("size", "most"), [(16, 10), (176, 5)])
def test_thread_locals_leave_room_for_fewer_ranks(tmp_path: Path, size: int, most: int) -> None:
    """As AMPI has started so many, and not one more (docs/diagnoses.md)."""
    block = f"static __thread char block[{size}] __attribute__((aligned(8)));\n"
    (tmp_path / "program.c").write_text(block + "int AMPI_Main(void) { return ++block[0]; }\n")
    program = tmp_path / "program.so"
    options = ["-g", "-shared", "-fPIC", "-ftls-model=initial-exec"]
    command = ["gcc", *options, "-o", str(program), str(tmp_path / "program.c")]
    subprocess.run(command, check=True, timeout=60)
    (judged,) = audit(program, "--method", "pip")["methods"]
    assert judged["notes"][0].startswith(f"at most {most} ranks in a process")


def test_exceptions_under_ampi(tmp_path: Path) -> None:
    (tmp_path / "program.cpp").write_text(CATCH)
    program = tmp_path / "program.so"
    subprocess.run(["g++", "-g", "-shared", "-fPIC", "-o", program, tmp_path / "program.cpp"], check=True, timeout=60)
    assert diagnoses(audit(program))["pie"]["exceptions-in-byte-copy"] == "lost"
    assert diagnoses(audit(program, "--for", "pip"))["pipthread"] == {}
    assert "exceptions-in-byte-copy" not in diagnoses(audit(program, "--for", "embedded"))["pie"]


def test_a_program_of_smpi(tmp_path: Path) -> None:
    found = audit(for_simgrid(tmp_path))
    assert found["runtime"] == "smpi"
    by_method = diagnoses(found)
    assert list(by_method) == SMPI and by_method["fs"] == {"hidden-libc-state": "risk"}
    assert by_method["mmap"]["storage-not-private"] == "lost"


def test_a_file_that_does_not_say(tmp_path: Path) -> None:
    program = build(tmp_path, "main")
    found = audit(program)
    assert found["runtime"] is None and diagnoses(found)["pie"]["thread-local-in-byte-copy"] == "refused"
    assert list(diagnoses(audit(program, "--for", "ampi"))) == AMPI
    assert "hidden-libc-state" not in diagnoses(audit(program, "--for", "embedded"))["pie"]
    shown = subprocess.run([BIN / "inspector", "audit", program, "--for", "ampi"], capture_output=True, text=True)
    assert "how the program would fare under AMPI" in shown.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--for", "mpich"], "'mpich' is not a runtime: runtimes are ampi, smpi, pip, embedded"),
        (["--for", "ampi", "--method", "tpsl"], "ampi has no method 'tpsl': it has pie, pip, fs, tls, swap, none"),
    ],
)
def test_what_is_refused(tmp_path: Path, options: list[str], sentence: str) -> None:
    words = [str(BIN / "inspector"), "audit", str(build(tmp_path, "main")), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, f"inspector: {sentence}\n")


def test_the_runtime_of_a_job(start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "ranks.c")
    assert audit(job.pid)["runtime"] == "embedded"
    for runtime, method, expected in (
        ("AMPI", "pie", "ampi"),
        ("SMPI", "mmap", "smpi"),
        ("PiP", "pipprocess", "pip"),
        ("embedded 1", "pipthread", "embedded"),
        ("toy", "namespaces", ""),
    ):
        assert of_job(RankTable(method, runtime, 0, (), (), Evidence("registry", "a test"))) == expected
