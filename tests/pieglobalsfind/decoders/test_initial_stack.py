"""A variable of a process's first environment, running and in a core file; what it has changed since is not asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pieglobalsfind.decoders.arguments_and_environment import start, variable
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from tests.support.fabricate.memory import Mapped, MemoryTarget
from tests.support.gdb.places import make_core
from tests.support.waiting import wait_until

VALUE = "1 10.0.0.7 34987 é"


def told(target: Target, name: str) -> str:
    return variable(target, target.maps(), name)


def test_it_is_read_where_the_kernel_has_put_it(tmp_path: Path) -> None:
    environment = {"FIRST": "1", "NETSTART_NOT": "2", "NETSTART": f"{VALUE}\x1b\n", "EMPTY": ""}
    with subprocess.Popen(["/bin/sleep", "300"], env=environment, stdout=subprocess.PIPE) as process:
        try:
            wait_until(lambda: told(open_target(pid=process.pid), "NETSTART") == VALUE, "no variable was found")
            for target in (open_target(pid=process.pid), open_target(core=str(make_core(process.pid, tmp_path)))):
                assert [told(target, name) for name in ("FIRST", "NETSTART", "EMPTY", "ABSENT")] == ["1", VALUE, "", ""]
        finally:
            process.kill()


def test_a_file_that_is_called_like_a_loader_tells_nothing() -> None:
    assert told(MemoryTarget([Mapped(0x1000, 0x1000, b"\x7fELF", "/lib/ld-none.so")]), "NETSTART") == ""


def test_two_starts_of_a_program_differ_and_a_core_file_is_of_its_process_s(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "300"]) as process, subprocess.Popen(["/bin/sleep", "300"]) as other:
        try:
            wait_until(lambda: all(told(open_target(pid=each.pid), "PATH") for each in (process, other)), "not started")
            core = make_core(process.pid, tmp_path)
            targets = [open_target(pid=process.pid), open_target(core=str(core)), open_target(pid=other.pid)]
            first, of_core, second = (start(target, target.maps()) for target in targets)
        finally:
            process.kill()
            other.kill()
    assert first and first == of_core != second != ""
