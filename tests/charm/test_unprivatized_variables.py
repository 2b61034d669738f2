"""Where stock AMPI has privatized nothing, every tool shows the variables that the program prints, and says so.

The truth is the program's own words, the bytes at the addresses that it prints, and plain GDB, which knows nothing of
ranks and shows the original: what all ranks use then.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, BOTH, RANKS, SOURCES, Running, build, running
from tests.support.debuggers import find_gdb, find_lldb
from tests.support.gdb.places import make_core
from tests.support.running import ROOT

pytestmark = [
    pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH"),
    pytest.mark.timeout(900),  # the debug information of a debug build of Charm++ is large
]
C_SOURCE = (
    SOURCES["c"]
    .replace("PRIVATE int g_rank = -1;", "static __thread int small = 3; static int hidden; int g_rank = -1;")
    .replace("g_rank = me;", "g_rank = small = me; hidden = 100 + me;")
)
LIBRARY_SOURCE = "__thread int small = 3;\n"  # what a Fortran program is linked with
PROGRAMS = {
    "c-stock": ("pie", "c", False, C_SOURCE),
    "c-hook": ("pie", "c", True, C_SOURCE),
    "c-both-flags": (BOTH, "c", False, C_SOURCE),
    "cpp-stock": ("pie", "cpp", False, C_SOURCE),
    "cpp-both-flags": (BOTH, "cpp", False, C_SOURCE),
    "f90-stock": ("pie", "f90", False, SOURCES["f90"]),
    "f90-both-flags": (BOTH, "f90", False, SOURCES["f90"]),
}
SAID = "privatization of prog.user.so failed in 4 of 4 ranks: its writable segment begins at no multiple of 8"
NOMINAL = -1  # what each rank's own copy still has


@dataclass(frozen=True)
class Lost:
    """A job; `name` is the variable's to the inspector, `value` what all ranks use."""

    job: Running
    language: str
    has_both_flags: bool

    @property
    def name(self) -> str:
        return "state::g_rank" if self.language == "f90" else "g_rank"

    @property
    def address(self) -> str:
        return self.job.truth[0].global_address

    @property
    def value(self) -> int:
        with Path(f"/proc/{self.job.pid}/mem").open("rb") as memory:
            memory.seek(int(self.address, 16))
            return int.from_bytes(memory.read(4), sys.byteorder, signed=True)

    def gdb(self, kind: str, tmp_path: Path, *commands: str) -> str:
        """What GDB prints of the job, or of its core file."""
        if kind == "live":
            target = ["-p", str(self.job.pid)]
        else:
            target = [str(self.job.folder / "prog"), str(make_core(self.job.pid, tmp_path))]
        words = [word for command in commands for word in ("-ex", command)]
        return run(find_gdb(), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", *target, *words).stdout

    def lldb(self, kind: str, tmp_path: Path, *commands: str) -> str:
        """What LLDB with the extension prints of the job, or of its core file."""
        if kind == "live":
            target = ["-p", str(self.job.pid)]
        else:
            target = [str(self.job.folder / "prog"), "-c", str(make_core(self.job.pid, tmp_path))]
        asked = (f"command script import {ROOT / 'lldbext'}", *commands)
        words = [word for command in asked for word in ("-o", command)]
        return run(find_lldb(), "-x", "-b", *target, *words).stdout


@pytest.fixture(scope="module", params=PROGRAMS)
def lost(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lost]:
    method, language, with_hook, source = PROGRAMS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    more = []
    if language == "f90":
        Path(folder, "small.c").write_text(LIBRARY_SOURCE)
        subprocess.run(["cc", "-g", "-fPIC", "-c", "small.c"], cwd=folder, check=True, timeout=120)
        more = ["small.o"]
    build(folder, method, language, with_hook=with_hook, source=source, more=more)
    with running(folder) as up:
        assert len({truth.global_address for truth in up.truth.values()}) == 1, "AMPI has privatized it"
        yield Lost(up, language, method == BOTH)


def run(*words: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.parametrize("kind", ["live", "core"])
def test_the_inspector(lost: Lost, kind: str, tmp_path: Path) -> None:
    target = lost.job.pid if kind == "live" else make_core(lost.job.pid, tmp_path)
    done = run(sys.executable, "-m", "inspector", "globals", target, "--json")
    found = {load["name"]: load for load in json.loads(done.stdout)["globals"]}
    (shared,) = found[lost.name]["groups"]
    assert shared == {"ranks": "0-3", "value": str(lost.value)}
    assert found[lost.name]["verdict"] == "shared"
    if lost.language != "f90":
        assert [one["value"] for one in found["hidden"]["groups"]] == ["100", "101", "102", "103"]
    assert SAID in done.stderr
    (alarm,) = json.loads(run(sys.executable, "-m", "inspector", "pointers", target, "--json").stdout)["alarms"]
    assert "relocated words still name the original" in alarm["sentence"]
    nominal = run(sys.executable, "-m", "inspector", "globals", target, lost.name, "--nominal", "--json")
    (variable,) = json.loads(nominal.stdout)["globals"]
    assert variable["groups"] == [{"ranks": "0-3", "value": str(NOMINAL)}] and SAID in nominal.stderr


@pytest.mark.parametrize("kind", ["live", "core"])
def test_gdb(lost: Lost, kind: str, tmp_path: Path) -> None:
    main = "mpi_main" if lost.language == "f90" else "AMPI_Main"
    commands = [f"source {ROOT}/gdbext/rank.py"]
    for rank in range(RANKS):
        commands += [f"rank {rank}", f"frame function {main}", "output g_rank", "echo \\n", "print &g_rank"]
        commands += ["print hidden"] if lost.language != "f90" else []
    shown = lost.gdb(kind, tmp_path, *commands, "rank print g_rank", "rank print --nominal g_rank", "rank diff g_rank")
    value = lost.value
    assert len(re.findall(rf"^{value}\n\$\d+ = \(.*\) {lost.address}\b", shown, re.MULTILINE)) == RANKS, shown
    if lost.language != "f90":
        assert re.findall(r"^\$\d+ = (10\d)$", shown, re.MULTILINE) == ["100", "101", "102", "103"], shown
    for rank in range(RANKS):
        assert f"\n{rank}: {value} (the original's: privatization failed)\n" in shown, shown
        assert f"\n{rank}: {NOMINAL} (nominal: its code uses {lost.address})\n" in shown, shown
    assert f"\n0-3: {value} (the original's: privatization failed)\n" in shown, shown


@pytest.mark.parametrize("kind", ["live", "core"])
@pytest.mark.parametrize("debugger", ["gdb", "lldb"])
def test_what_stays_a_ranks_own(lost: Lost, debugger: str, kind: str, tmp_path: Path) -> None:
    """Static and thread-local variables, one rank after another, from a frame that is not the program's."""
    if lost.language == "f90":
        pytest.skip("it has none")
    values = []
    for rank in (*range(RANKS), 0):
        values += [100 + rank, rank if lost.has_both_flags else lost.value]
    chosen = (f"rank {rank}" for rank in (*range(RANKS), 0))
    asked = [command for one in chosen for command in (one, "p hidden", "p small")]
    if debugger == "gdb":
        shown = lost.gdb(kind, tmp_path, f"source {ROOT}/gdbext/rank.py", *asked)
        assert re.findall(r"^\$\d+ = (-?\d+)$", shown, re.MULTILINE) == list(map(str, values)), shown
    else:
        shown = lost.lldb(kind, tmp_path, *asked)
        assert re.findall(r"^\(int\) (?:\$\d+ = )?(-?\d+)$", shown, re.MULTILINE) == list(map(str, values)), shown


@pytest.mark.parametrize("kind", ["live", "core"])
def test_plain_gdb_shows_the_same(lost: Lost, kind: str, tmp_path: Path) -> None:
    """It has the original's variables alone, and a core file's in the program's own file."""
    program = lost.job.folder / "prog.user.so"
    name = "'state::g_rank'" if lost.language == "f90" else "g_rank"
    base = min(
        int(line.split("-")[0], 16)
        for line in Path(f"/proc/{lost.job.pid}/maps").read_text().splitlines()
        if line.endswith("prog.user.so")
    )
    symbols = [f"add-symbol-file {program} -o {base:#x}"] if kind == "core" else []
    plain = lost.gdb(kind, tmp_path, *symbols, f"print {name}", f"print &{name}")
    ours = lost.gdb(kind, tmp_path, f"source {ROOT}/gdbext/rank.py", "rank 2", f"print {name}", f"print &{name}")
    values = [re.findall(r"^\$\d = (?:\(.*\) )?(\S+)", said, re.MULTILINE) for said in (plain, ours)]
    assert values[0] == values[1] == [str(lost.value), lost.address], plain + ours


@pytest.mark.parametrize("kind", ["live", "core"])
def test_lldb(lost: Lost, kind: str, tmp_path: Path) -> None:
    if lost.language == "f90":
        pytest.skip("LLDB has no Fortran")
    asked = ("rank print g_rank", "rank print --nominal g_rank", "rank 2", "p g_rank", "p &g_rank")
    shown = lost.lldb(kind, tmp_path, *asked)
    for rank in range(RANKS):
        assert f"\n{rank}: {lost.value} (the original's: privatization failed)\n" in shown, shown
        assert f"\n{rank}: {NOMINAL} (nominal: its code uses {lost.address})\n" in shown, shown
    assert f"\n(int) {lost.value}\n" in shown and re.search(rf"\(int \*\) 0x0*{lost.address[2:]}\b", shown), shown


def test_pieglobalsfind(lost: Lost) -> None:
    done = run(sys.executable, "-m", "pieglobalsfind", "--pid", lost.job.pid, lost.address, "--nominal")
    first, *others = done.stdout.splitlines()
    assert "no rank  original  prog.user.so+0x" in first and f"{lost.name}+0x0" in first and SAID in done.stderr
    assert first.endswith("(the ranks use it: privatization failed)")
    assert len(others) == RANKS
    for rank, line in enumerate(others):
        assert f"  rank {rank}  data  " in line and f"{lost.name}+0x0" in line
        assert line.endswith("(its code uses the original's: privatization failed)")
