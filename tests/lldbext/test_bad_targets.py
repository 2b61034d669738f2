"""Targets that die or lie: one sentence each, and LLDB goes on as before; as in tests/gdbext."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.elf.file import ElfFile
from tests.support.gdb.places import RANKS, Places, compile_program, hold, make_core
from tests.support.lldb.session import Session
from tests.support.running import StartJob

COMMANDS = ("rank list", "rank 1", "rank bt", "rank tree", "rank print shared_name", "rank info 0")


def test_killed_under_the_debugger(session: Session, places: Places) -> None:
    answers = session.attach(
        f"""
        import os, signal
        tell("before", ask("rank 1"))
        os.kill({places.pid}, signal.SIGKILL)
        while open("/proc/{places.pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
            pass
        tell("answers", {{command: ask(command) for command in {COMMANDS}}})
        tell("alive", ask("version"))
        """,
        places.pid,
    )
    assert answers["before"].startswith("[Switching to rank 1"), answers["before"]
    for command, answer in answers["answers"].items():
        assert answer.startswith("error: ") and len(answer.splitlines()) == 1, (command, answer)
    assert answers["alive"].startswith("lldb") and "Traceback" not in answers.output


@pytest.mark.parametrize(
    ("offset", "word", "sentence"),
    [
        (0, struct.pack("<Q", 0x1122334455667788), "the registry at"),  # the magic
        (8, struct.pack("<I", 99), "version"),
        (16, struct.pack("<Q", 7), "half of that change"),  # a generation that is odd: the writer was stopped
    ],
)
def test_a_registry_that_lies(session: Session, places: Places, offset: int, word: bytes, sentence: str) -> None:
    """Overwritten as a wild pointer would; put right again, everything is as before."""
    maps = Path(f"/proc/{places.pid}/maps").read_text().splitlines()
    place = int(next(line.split("-")[0] for line in maps if "rank_debug_registry" in line), 16) + offset
    with open(f"/proc/{places.pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(place)
        before = memory.read(len(word))
        for content in (word, before):
            memory.seek(place)
            memory.write(content)
            answers = session.attach("tell('list', ask('rank list')); tell('alive', ask('version'))", places.pid)
            assert (sentence in answers["list"] + answers.output) == (content == word), answers["list"] + answers.output
            assert answers["alive"].startswith("lldb") and "Traceback" not in answers.output
    assert "MPI_Recv" in answers["list"]


def test_a_program_that_was_built_anew(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    """Names of the new file are not those of the job: the kernel still has the old one, a core file has none."""
    copy = tmp_path / "places"
    shutil.copy(program, copy)
    places = hold(start_job(rankrun, "-n", RANKS, copy))
    core = make_core(places.pid, tmp_path)
    ran = build_id_of(copy)
    copy.unlink()
    compile_program("rankcc", tmp_path, "places.c", "-O2")
    asked = {"print": "rank print shared_name", "bt": "rank bt 1", "list": "rank list"}
    script = f"for name, command in {asked}.items(): tell(name, ask(command))"
    answers = session.attach(script, places.pid)
    values = (places.owned[rank, "shared_name"].value for rank in range(RANKS))
    assert answers["print"].splitlines() == [f"{rank}: {value}" for rank, value in enumerate(values)]
    assert "wait_for (peer=2)" in answers["bt"] and "Traceback" not in answers.output
    answers = session.run(script, "-c", core, rankrun.resolve())
    refusal = f"{copy} has build-id {build_id_of(copy)}, the target runs {ran}"
    assert refusal in answers.output, answers.output
    assert "?? ()" in answers["bt"] and "wait_for (" not in answers["bt"], answers["bt"]
    assert not re.search(r": \d", answers["print"]), answers["print"]
    assert len(answers["list"].splitlines()) == RANKS + 1 and "Traceback" not in answers.output


def test_a_stripped_program(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    """Without names, the file at least is the one that the job runs, not what we have LLDB read."""
    stripped = tmp_path / "places"
    subprocess.run(["strip", "-o", stripped, program], check=True, timeout=60)
    job = start_job(rankrun, "-n", 3, stripped)
    job.wait_for("ready")
    answers = session.attach("tell('bt', ask('rank bt 1'))", job.pid)
    assert answers["bt"].count(f" from {stripped}\n") == 3 and "ranklens-lldb" not in answers["bt"], answers["bt"]


def build_id_of(path: Path) -> str:
    with ElfFile(str(path)) as elf:
        return elf.build_id.hex()
