"""The runtime of docs/abi.md, built from that page alone: tools show its ranks, rank-debug-check finds its faults."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.gdb.session import Session
from tests.support.places import gcore
from tests.support.running import BIN, ROOT, Job, StartJob

PAGE = (ROOT / "docs" / "abi.md").read_text()
SOURCES = {code.split()[1].rstrip(":"): code for code in re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)}
CONSOLE = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[0]
HEADER = ROOT / "build" / "runtime" / "include"


def start(folder: Path, start_job: StartJob, change: tuple[str, str] = ("", "")) -> Job:
    """Build the page's files as the page says, with a change to the runtime, and wait until every rank waits."""
    assert change[0] in SOURCES["toy.c"]
    for name, code in SOURCES.items():
        (folder / name).write_text(code.replace(*change) if name == "toy.c" and change[0] else code)
    build = CONSOLE.splitlines()[0].removeprefix("$ ").replace("gcc", f"gcc -Wall -Wextra -Werror -I{HEADER}")
    subprocess.run(["/bin/sh", "-c", build], cwd=folder, check=True, timeout=60)
    job = start_job(folder / "toy", folder / "ring.so")
    job.wait_for("every rank waits")
    return job


def check(*words: object) -> tuple[int, str, str]:
    done = subprocess.run([BIN / "rank-debug-check", *map(str, words)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def inspect(command: str, target: object) -> Any:
    done = subprocess.run([BIN / "inspector", command, str(target), "--json"], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_tool_shows_it(tmp_path: Path, start_job: StartJob, gdb: Path) -> None:
    job = start(tmp_path, start_job)
    documented = [line.replace("process 4711", f"process {job.pid}") for line in CONSOLE.splitlines()]
    status, output, errors = check(job.pid)
    assert (status, errors) == (0, "") and output.splitlines() == documented[4:6]
    core = gcore(job, tmp_path)
    status, output, errors = check(core)
    assert (status, errors) == (0, "") and "contradicts nothing" in output
    for target in (job.pid, core):
        assert inspect("waits", target)["cycles"] == [[0, 1, 2]]
        (stack,) = inspect("stacks", target)["stacks"]
        assert [one["function"] for one in stack["calls"]] == ["program_main", "receive"] and stack["ranks"] == "0-2"
        (found,) = inspect("globals", target)["globals"]
        assert [group["value"] for group in found["groups"]] == ["0", "1", "2"] and found["verdict"] == "differs"
    answers = Session(gdb, tmp_path).attach(
        'ask("rank 1")\ntell("functions", functions())\ntell("value", value("my_rank"))', job.pid
    )
    functions = answers["functions"][: answers["functions"].index("rank_entry") + 1]
    assert functions[-3:] == ["receive", "program_main", "rank_entry"] and answers["value"] == 1
    text = subprocess.run([BIN / "inspector", "waits", str(job.pid)], capture_output=True, text=True, timeout=60).stdout
    assert next(line for line in documented if line.startswith("deadlock")) in text.splitlines()


FAULTS = {
    "no program": ((" | RANK_DEBUG_OBJECT_PROGRAM", ""), "lack: objects: none has the flag PROGRAM"),
    "not privatized": (
        ("RANK_DEBUG_OBJECT_PRIVATIZED | ", ""),
        "lack: object 0 (ring.so): ranks have copies of it, and",
    ),
    "no entry": (("(uint64_t)(uintptr_t)rank_entry;", "0;"), "lack: header: entry_function is 0"),
    "data as entry": (
        ("(uint64_t)(uintptr_t)rank_entry;", "(uint64_t)(uintptr_t)&current;"),
        "contradiction: header: entry_function 0x",
    ),
    "no context": (
        ("= (uint64_t)(uintptr_t)&contexts[rank]; /*", "= 0; /*"),
        "contradiction: ranks 0-2: it is BLOCKED, and context is 0",
    ),
    "another layout": (
        ("uc_mcontext.gregs) +", "uc_mcontext.gregs) + 8 +"),
        "contradiction: ranks 0-2: the context of the rank at 0x",
    ),
    "no layout": (
        ("    describe_context();\n", "    if (count > 5)\n        describe_context();\n"),
        "lack: context_registers: there are none",
    ),
    "no such rank": (
        ("->wait_peer = from;", "->wait_peer = from + 5;"),
        "contradiction: rank 2: it waits for rank 5, which the job has not",
    ),
    "a communicator": (
        ("->wait_tag = 0;", "->wait_tag = 0;\n    records[current]->wait_communicator = 9;"),
        "lack: ranks 0-2: it waits for a rank of communicator 9",
    ),
    "no commit": (("    rank_hooks_commit();\n", ""), "contradiction: header: generation is 1, odd"),
    "no copy there": (
        ("rank, 0, map->l_addr}", "rank, 0, map->l_addr + 4096}"),
        "contradiction: ranks 0-2: the registry has its copy at 0x",
    ),
    "no thread": (("(uint32_t)syscall(SYS_gettid)", "1"), "contradiction: ranks 0-2: there is no thread 1"),
    "no stack": (("(uint64_t)(uintptr_t)stack,", "64,"), "contradiction: "),
    "too many ranks": (
        ("->rank_count = RANKS", "->rank_count = RANKS + 1"),
        "contradiction: header: rank_count is 4 in a job of one process",
    ),
    "one rank twice": (
        ("        .rank = rank,", "        .rank = rank / 2,"),
        "contradiction: registry: the registry is damaged, a rank has two records",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(tmp_path: Path, start_job: StartJob, fault: str) -> None:
    change, line = FAULTS[fault]
    status, output, errors = check(start(tmp_path, start_job, change).pid)
    assert status == 1 and errors == ""
    assert any(one.startswith(line) for one in output.splitlines()), output
    assert "contradicts nothing" not in output


def test_what_is_no_registry(tmp_path: Path, start_job: StartJob) -> None:
    process = start_job("/bin/sh", "-c", "echo ready; read line || sleep 1000")
    process.wait_for("ready")
    status, output, errors = check(process.pid)
    assert (status, output) == (2, "") and f"process {process.pid} has no registry: call rank_hooks_create()" in errors
    assert check("/nowhere")[0] == 2 and check(99999999)[0] == 2
