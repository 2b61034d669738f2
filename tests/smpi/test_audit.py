"""What `inspector audit` says of programs under SMPI, and of a job by the way that it privatizes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.running import StartJob
from tests.support.sharing import Shared
from tests.support.smpi.answers import asked
from tests.support.smpi.jobs import SOURCES, built, needs_smpi, start

pytestmark = needs_smpi


@pytest.mark.parametrize(
    ("privatization", "wanted", "name"),
    [("dlopen", "unique-symbols", "common"), ("mmap", "storage-not-private", "t_rank")],
)
def test_a_job(privatization: str, wanted: str, name: str, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """C++ inline variables are one for all copies, thread-local ones one for all ranks of a kernel thread."""
    options = [f"--cfg=smpi/privatization:{privatization}"]
    running = start(start_job, tmp_path, 4, built(shared, "truth.cpp"), options)
    (judged,) = asked("audit", running.pid, statuses=(0, 1))["methods"]
    assert judged["method"] == ("fs" if privatization == "dlopen" else "mmap")
    (found,) = [one for one in judged["diagnoses"] if one["id"] == wanted]
    assert name in found["evidence"]


def test_statics_of_templates(shared: Shared) -> None:
    """As test_ranks.py has it of a job: the loader keeps one of them, too, in any number of copies."""
    program = built(shared, "templates.cpp")
    fs, mmap, _ = asked("audit", program)["methods"]
    (found,) = [one for one in fs["diagnoses"] if one["id"] == "unique-symbols"]
    assert "counted<int>()::times" in found["evidence"] and "Table<int>::size" in found["evidence"]
    assert "unique-symbols" not in [one["id"] for one in mmap["diagnoses"]]
    plain = built(shared, "templates.cpp", "-fno-gnu-unique")
    assert "unique-symbols" not in [one["id"] for one in asked("audit", plain)["methods"][0]["diagnoses"]]


@pytest.mark.parametrize("is_told", [True, False], ids=["privatize-libs", "stock"])
def test_a_library(is_told: bool, start_job: StartJob, shared: Shared, tmp_path: Path) -> None:
    """Its globals are one for all ranks, unless SMPI is told of it; test_ranks.py asks the job itself."""
    words = ["gcc", "-g", "-shared", "-fPIC", "-Wl,-soname,libownlibrary.so", SOURCES / "library_own.c"]
    library = shared.compiled(words, "libownlibrary.so")
    program = built(shared, "library.c", str(library), f"-Wl,-rpath,{library.parent}")
    options = [f"--cfg=smpi/privatize-libs:{library.name}"] if is_told else []
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    running = start(start_job, tmp_path, 4, program, options, environment)
    (judged,) = asked("audit", running.pid, statuses=(0, 1))["methods"]
    found = [one["evidence"] for one in judged["diagnoses"] if one["id"] == "library-globals-shared"]
    assert found == ([] if is_told else ["the program needs libownlibrary.so"])
    by_method = {one["method"]: [each["id"] for each in one["diagnoses"]] for one in asked("audit", program)["methods"]}
    assert {name for name, ids in by_method.items() if "library-globals-shared" in ids} == {"fs", "mmap"}
