"""Core files of AArch64 on this machine, in the kernel's form: all that a process under qemu-user has in memory."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

import pieglobalsfind
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.aarch64 import AARCH64
from pieglobalsfind.targets.live import LiveTarget
from tests.aarch64.conftest import Aarch64
from tests.aarch64.test_programs import RANKS, all_wait, check_stacks, check_values, hold, known
from tests.aarch64.test_serve import SIGNED, gdb_of_all, output
from tests.support.debuggers import find_lldb
from tests.support.fabricate.core_file import File, Memory, Thread, core
from tests.support.running import ROOT, Job, StartJob
from tests.support.waiting import wait_until


def core_of(job: Job, place: Path) -> Path:
    """What the kernel would write; no thread's registers are known, because the host's are the emulator's."""
    target = LiveTarget(job.pid)
    memory, files = [], []
    for one in target.maps():
        is_emulators = "qemu" in one.path or one.end >> 47 or (one.writable and one.executable)
        if not one.readable or is_emulators:
            continue
        try:
            data = target.read(one.start, one.end - one.start)
        except MemoryUnreadable:
            continue
        memory.append(Memory(one.start, one.end - one.start, data, 4 | 2 * one.writable | one.executable))
        if one.path.startswith("/"):
            files.append(File(one.start, one.end, one.offset // 4096, one.path))
    thread = Thread(job.pid, 0, 0)
    place.write_bytes(core(tuple(memory), tuple(files), (thread,), AARCH64.elf_machine, vector_of(target)))
    return place


def vector_of(target: LiveTarget) -> tuple[tuple[int, int], ...]:
    """AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE, AT_ENTRY; AT_HWCAP with HWCAP_PACA."""
    first = {one.path.rpartition("/")[2]: one.start for one in reversed(target.maps()) if one.path.startswith("/")}
    program, loader = first["rankrun"], first["ld-linux-aarch64.so.1"]
    header = target.read(program, 64)
    (entry,), (count,) = struct.unpack_from("<Q", header, 24), struct.unpack_from("<H", header, 56)
    return (3, program + 64), (4, 56), (5, count), (6, 4096), (7, loader), (9, program + entry), (16, 1 << 30)


@pytest.mark.parametrize("method", ["pie", "fs", "signed"])
def test_values_and_stacks(aarch64: Aarch64, start_job: StartJob, tmp_path: Path, method: str) -> None:
    running, printed = hold(aarch64, start_job, *(("pie", *SIGNED) if method == "signed" else (method,)))
    wait_until(lambda: all_wait(running.pid), running.stderr)
    place = core_of(running, tmp_path / "core")
    running.close()
    with pieglobalsfind.open(core=str(place)) as job:
        assert job.table().processor is AARCH64
        check_values(job, printed)
        check_stacks(job)


COMMANDS = ("rank list", "rank 2", "bt", "rank print exported", "rank print inner", "rank bt 1")


@pytest.mark.parametrize("options", [(), SIGNED], ids=["plain", "signed"])
def test_gdb_with_the_extension(
    aarch64: Aarch64, start_job: StartJob, tmp_path: Path, options: tuple[str, ...]
) -> None:
    gdb = gdb_of_all()
    running, printed = hold(aarch64, start_job, "pie", *options)
    wait_until(lambda: all_wait(running.pid), running.stderr)
    place = core_of(running, tmp_path / "core")
    words = [word for command in COMMANDS for word in ("-ex", command)]
    extension = ["-ex", "set auto-load python-scripts off", "-x", ROOT / "gdbext" / "rank.py"]
    text = output([gdb, "-nx", "-q", "-batch", aarch64.runtime / "bin/rankrun", "-c", place, *extension, *words])
    check_text(text, printed)


@pytest.mark.parametrize("method", ["none", "pip", "fs", "tls"])
def test_thread_local_variables(aarch64: Aarch64, start_job: StartJob, tmp_path: Path, method: str) -> None:
    """GCC's debug information does not say where they are; GDB knows the external one, and of the other says so."""
    gdb = gdb_of_all()
    program = aarch64.built(method, source="per_thread.c")
    running = start_job(*aarch64.command(method, program, RANKS), environment=aarch64.environment)
    running.wait_for(" 0x", RANKS, timeout=200)
    printed = {int(line.split()[0]): line.split()[1:] for line in running.lines}
    wait_until(lambda: all_wait(running.pid), running.stderr)
    place = core_of(running, tmp_path / "core")
    running.close()
    with pieglobalsfind.open(core=str(place)) as job:
        for rank, (external, value, own, own_value) in printed.items():
            found = [known(job.globals(name)[rank]) for name in ("external", "own")]
            assert [(one.address, one.text) for one in found] == [(int(external, 16), value), (int(own, 16), own_value)]
    del printed[0]  # it runs: the core file has no registers by which GDB could select it
    words = [word for rank in printed for word in (f"rank {rank}", "output &external", "print external")]
    words = [word for command in (*words, "rank print own") for word in ("-ex", command)]
    extension = ["-ex", "set auto-load python-scripts off", "-x", ROOT / "gdbext" / "rank.py"]
    text = output([gdb, "-nx", "-q", "-batch", aarch64.runtime / "bin/rankrun", "-c", place, *extension, *words])
    shown = re.findall(r"^\(int \*\) (0x\w+)(?: <\w+>)?\$\d+ = (.*)$", text, re.MULTILINE)
    assert shown == [(external, value) for external, value, *_ in printed.values()], text
    assert "\n1: <optimized out>\n2: <optimized out>\n" in text and "no debug info" not in text, text


def test_lldb_with_the_extension(aarch64: Aarch64, start_job: StartJob, tmp_path: Path) -> None:
    running, printed = hold(aarch64, start_job, "pie")
    wait_until(lambda: all_wait(running.pid), running.stderr)
    place = core_of(running, tmp_path / "core")
    extension = f"command script import {ROOT / 'lldbext'}"
    words = [word for command in (extension, *COMMANDS) for word in ("-o", command)]
    program = aarch64.runtime / "bin/rankrun"
    check_text(output([find_lldb(), "--no-lldbinit", "-b", program, "-c", place, *words]), printed)


def check_text(text: str, printed: dict[int, list[str]]) -> None:
    for rank, (_, exported, inner, *_) in printed.items():
        assert f"\n{rank}: {exported}\n" in text and f"\n{rank}: {inner}\n" in text, text
    assert len(re.findall(r"\bdeep\b.*program\.c:", text)) >= 8, text  # in two ranks four times each
    assert len(re.findall(r"^ +\d +blocked .*MPI_Recv", text, re.MULTILINE)) == RANKS - 1, text
