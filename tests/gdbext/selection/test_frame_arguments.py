"""How much of arguments a backtrace prints is what settings and options ask for, as of a process."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.gdb.places import SOURCES, compile_program
from tests.support.gdb.session import EXTENSION, Session
from tests.support.gdb.terminal import PROMPT, terminal

AMOUNTS = ("scalars", "all", "none", "presence")
ADDRESS = r"0x[0-9a-f]+"


def test_backtraces(session: Session, rankrun: Path, tmp_path: Path) -> None:
    job = compile_program("rankcc", tmp_path, "pairs.c")
    alone = tmp_path / "alone"
    source = str(SOURCES / "pairs.c")
    subprocess.run(["gcc", "-g", "-O0", "-DALONE", source, "-o", str(alone)], check=True, timeout=120)
    script = f"""
gdb.execute("break add")
gdb.execute("run")
shown = [ask("bt -frame-arguments " + amount) for amount in {AMOUNTS}]
for amount in {AMOUNTS}:
    gdb.execute("set print frame-arguments " + amount)
    shown += [ask("bt"), ask("bt 1")]
tell("shown", shown)
"""
    answers = [
        session.run(script, "--args", *words, source=words != [alone])["shown"]
        for words in ([rankrun, "-n", "1", job], [alone])
    ]
    in_rank, in_process = ([re.sub(ADDRESS, "ADDRESS", answer) for answer in one] for one in answers)
    assert "pair={first = 2, second = 2.5}" in in_process[1]
    assert in_rank == in_process


def test_a_typed_option_means_fortran_s_strings_too(gdb: Path, rankrun: Path, tmp_path: Path) -> None:
    """Each has the length that its own frame tells."""
    job = compile_program("rankfort", tmp_path, "texts.F90")
    alone = tmp_path / "alone"
    source = str(SOURCES / "texts.F90")
    subprocess.run(["gfortran", "-g", "-O0", "-DALONE", source, "-o", str(alone)], check=True, timeout=120)
    answers = []
    for words in (["-ex", f"source {EXTENSION}", "--args", rankrun, "-n", "1", job], [alone]):
        with terminal(gdb, *words) as user:
            user.wait_for(PROMPT)
            user.ask("set width 0")
            user.ask("break count_signs")
            user.ask("run")
            shown = [user.ask(f"bt -frame-arguments {amount}") for amount in AMOUNTS]
            answers.append([re.sub(ADDRESS, "ADDRESS", answer) for answer in shown])
    in_rank, in_process = answers
    assert "text='short', other='rather longer'" in in_process[1]
    assert in_rank == in_process


def test_a_backtrace_says_why_it_ends_early(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """As GDB does where no filter is on."""
    script = """
import gdb.unwinder

class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc

class Inwards(gdb.unwinder.Unwinder):
    "The caller's frame lies on the wrong side of this one."
    def __init__(self):
        super().__init__("inwards")
    def __call__(self, pending):
        sp, pc, rbp = (pending.read_register(name) for name in ("rsp", "rip", "rbp"))
        if int(pc) != self.pc:
            return None
        info = pending.create_unwind_info(FrameId(sp, pc))
        for name, value in (("rip", self.caller), ("rsp", sp - 4096), ("rbp", rbp - 4096)):
            info.add_saved_register(name, gdb.Value(value).cast(pending.read_register(name).type))
        return info

gdb.execute("break add")
gdb.execute("run")
Inwards.pc, Inwards.caller = gdb.newest_frame().pc(), gdb.newest_frame().older().pc()
gdb.unwinder.register_unwinder(None, Inwards(), replace=True)
gdb.invalidate_cached_frames()
tell("shown", ask("bt"))
"""
    answers = session.run(script, "--args", rankrun, "-n", "1", compile_program("rankcc", tmp_path, "pairs.c"))
    assert answers["shown"].endswith("\nBacktrace stopped: previous frame inner to this frame (corrupt stack?)\n")
