"""Jobs of which a process can't be told: it is another user's, or its registry is of a version that nobody here knows.

Each is a real job, whose process is named, and whose other processes are reported.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector import cli
from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.layout import parse_header
from tests.support.job_programs import Build
from tests.support.running import Job, StartJob

from .test_processes import children
from .test_tools import inspector, report

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to become others, and to write to a process")

USER, OTHER = 61001, 61002  # nobody has these numbers
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody may look into, as pytest's own is not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_user(user: int, words: list[str], said: Path) -> tuple[int, str]:
    """The command as that user, in a process that has loaded all that it needs, which others may not be able to."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(descriptor, 1)
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            with os.fdopen(1, "w", closefd=False) as output, pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.stdout", output)
                status = cli.main(words)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.read_text()


@pytest.mark.skipif(YAMA.exists() and YAMA.read_text() != "0\n", reason="no user may read their own processes here")
def test_a_process_of_another_user_is_named_and_the_rest_is_reported(
    start_job: StartJob,
    build: Build,
    rankrun: Path,
    open_folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = shutil.copy(build("processes_of_other_users.c"), open_folder)
    job = start_job(rankrun, "-n", 6, "--procs", 3, program, USER, OTHER)
    job.wait_for("waits", times=6)
    words = ["report", "--json", "--job", str(job.pid)]
    assert cli.main(words) == 0
    assert json.loads(capfd.readouterr().out)["warnings"] == [], "root may read all"
    status, text = as_user(USER, words, tmp_path / "said")
    assert status == 0
    found = json.loads(text)
    other = children(job.pid)[1]
    assert found["warnings"] == [
        "of 3 processes of the job 1 can't be found: 1",
        f"process {other} of user {OTHER} may be a missing one: no permission to read process {other}",
        "no process shows ranks 2-3",
    ]
    assert values_of("my_rank", found) == {"0": "0", "1": "1", "4": "4", "5": "5"}
    assert [one["rank"] for one in found["payload"]] == [0, 1, 4, 5]


def values_of(name: str, found: dict[str, Any]) -> dict[str, str]:
    (variable,) = (one for one in found["globals"] if one["name"] == name)
    return {one["ranks"]: one["value"] for one in variable["groups"]}


# ---- several versions ----

NEWER = "version 2 of the debug ABI, this reader knows version 1"
VERSION_AT = 8  # struct rank_debug_header: magic, abi_version, header_size


class Registry:
    """The registry of a running process, to be written to."""

    def __init__(self, pid: int) -> None:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        self.address = int(next(line for line in lines if layout.MAPPING_NAME in line).partition("-")[0], 16)
        self.memory = Path(f"/proc/{pid}/mem")

    def read(self, offset: int, size: int) -> bytes:
        with self.memory.open("rb", buffering=0) as file:
            return os.pread(file.fileno(), size, self.address + offset)

    def write(self, offset: int, content: bytes) -> None:
        with self.memory.open("r+b", buffering=0) as file:
            assert os.pwrite(file.fileno(), content, self.address + offset) == len(content)

    def age(self, header_size: int, stride: int) -> None:
        """As an older writer would have it: ranks' records are shorter, and the header ends before newer tables."""
        _, tables = parse_header(self.read(0, layout.HEADER_SIZE), "<")
        number = layout.TABLES.index(layout.RankRecord)
        ranks = tables[number]
        at = ranks.address - self.address
        rows = self.read(at, ranks.count * ranks.stride)
        short = (rows[first : first + stride] for first in range(0, len(rows), ranks.stride))
        self.write(at, b"".join(short).ljust(len(rows), b"\xee"))
        place = layout.FIXED_SIZE + number * layout.TABLE_SIZE
        self.write(place, struct.pack("<QII", ranks.address, ranks.count, stride))
        self.write(VERSION_AT + 4, struct.pack("<I", header_size))


@pytest.fixture
def job(start_job: StartJob, build: Build, rankrun: Path) -> Job:
    """Ten ranks in three processes, 0-3, 4-6 and 7-9, which never moved."""
    found = start_job(rankrun, "-n", 10, "--procs", 3, build("cross.c"))
    found.wait_until_still()
    return found


def test_older_writers_beside_newer_ones_are_all_read(job: Job) -> None:
    before = report("--job", job.pid)
    first, second, _ = map(Registry, children(job.pid))
    first.age(472, 112)  # the first writers of version 1: without `process` and `moves`
    second.age(504, 120)  # those after them: without `exit_status` and the ring of events
    after = report("--job", job.pid)
    assert after["warnings"] == [] and len(after["ranks"]) == 10
    unknown = {"process": -1, "exit_status": None}
    assert after["ranks"][:4] == [{**one, **unknown} for one in before["ranks"][:4]]
    assert after["ranks"][4:] == before["ranks"][4:]
    assert after["globals"] == before["globals"] and after["payload"] == before["payload"]


@pytest.mark.parametrize(
    ("offset", "content", "reason"),
    [
        (VERSION_AT, struct.pack("<I", 2), f"the registry is of {NEWER}"),
        (0, b"\xff" * 320, "the registry at {address:#x} begins with 0xffffffffffffffff instead of its magic"),
    ],
    ids=["newer", "nothing of it is where it was"],
)
def test_a_version_that_nobody_knows_is_named_and_the_rest_is_reported(
    offset: int, content: bytes, reason: str, job: Job
) -> None:
    pid = children(job.pid)[1]
    registry = Registry(pid)
    registry.write(offset, content)
    expected = [
        "of 3 processes of the job 1 can't be found: 1",
        f"process {pid} of user root may be a missing one: {reason.format(address=registry.address)}",
        "no process shows ranks 4-6",
    ]
    found = report("--job", job.pid)
    assert found["warnings"] == expected
    assert [one["rank"] for one in found["ranks"]] == [0, 1, 2, 3, 7, 8, 9]
    done = inspector("stacks", "--job", job.pid)
    assert done.returncode == 0 and all(one in done.stderr for one in expected[:2]), done.stderr
    asked = inspector("report", "--job", pid)
    assert asked.returncode == 2 and reason.format(address=registry.address) in asked.stderr, asked.stderr
