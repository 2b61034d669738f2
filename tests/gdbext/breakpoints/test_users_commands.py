"""Users' `commands` of a breakpoint that go on, typed at a terminal: they see the rank that has stopped, at every stop.

What they print, and what is displayed, is compared with one process that does what the ranks do (paces.c).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.gdb.breakpoint_walk import START, Programs
from tests.support.gdb.places import compile_program
from tests.support.gdb.session import EXTENSION
from tests.support.gdb.terminal import PROMPT, terminal
from tests.support.running import built

RANKS = 4
TURNS = 3
COUNTING = r"set $seen = $seen + 1\nprintf \"seen %d, paced %d of %d\\n\", $seen, paced, pacer\n"
GOING_ON = COUNTING + "continue"
SHOWN = r"seen \d+, paced \d+ of \d|pacer = \d|turns = \d|Old value.*|New value.*"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs.build(tmp_path_factory.mktemp("paces"))


@pytest.mark.parametrize(
    ("lines", "commands"),
    [
        (("break pace_down", "break pace_down"), GOING_ON),
        (("break pace_down if pacer != 1", "break pace_down"), rf"silent\n{GOING_ON}"),
        (("display pacer", "break pace_down"), GOING_ON),
        (("display turns", "display pacer", "break pace_down"), GOING_ON),
        (("display pacer", "break pace_down"), rf"{COUNTING}if $seen < 9\nstep\nend"),
        (("catch syscall getppid",), GOING_ON),
        (("display pacer", "catch syscall getppid"), GOING_ON),
        (("display pacer", "watch -l paced if pacer == 3"), GOING_ON),
    ],
    ids=["two", "silent", "display", "displays", "step", "catch", "catch-display", "watch"],
)
def test_they_go_on_as_in_a_process(gdb: Path, programs: Programs, lines: tuple[str, ...], commands: str) -> None:
    alone = printed(gdb, [programs.alone], lines, commands)
    job = printed(gdb, [built("rankrun"), "-n", RANKS, programs.job], lines, commands, "-ex", f"source {EXTENSION}")
    assert len(set(alone)) > RANKS, alone
    assert job == alone


def printed(gdb: Path, program: list[object], lines: tuple[str, ...], commands: str, *words: object) -> list[str]:
    """What all stops have printed until the program's end, with the commands at what the last line makes."""
    with terminal(gdb, *words, "--args", *program, TURNS) as user:
        user.wait_for(PROMPT)
        for line in (START, "run", "set $seen = 0", *lines):
            user.ask(line)
        user.ask(f'python gdb.execute("commands\\n{commands}\\nend")')
        said = ""
        while "The program is not being run" not in said:  # a step ends at a prompt
            said += user.ask("continue")
    return re.findall(SHOWN, said)


INTERRUPTED = """
import signal, traceback
from gdbext.{module} import {owner}

def interrupted(self, *words, calls=[], act={owner}.{function}):
    is_amid = any(frame.name == "{caller}" for frame in traceback.extract_stack())
    calls += [is_amid] * is_amid
    if is_amid and len(calls) % 5 == 0:  # one that comes as GDB begins to call a function is lost
        signal.raise_signal(signal.SIGINT)
    return act(self, *words)

{owner}.{function} = interrupted
"""


def test_ctrl_c_amid_a_stop_ends_commands_that_go_on(gdb: Path, programs: Programs, tmp_path: Path) -> None:
    """GDB forgets the KeyboardInterrupt of an event's function, here of the extension's, and the commands go on."""
    check_that_commands_end(
        gdb, programs.job, "pace_down", tmp_path, "selection.debugger", "GdbDebugger", "follow", "_stopped"
    )


@pytest.mark.parametrize(
    "place",
    [
        ("breakpoints.follower_breakpoint", "Follower", "_is_meant", "stop"),
        ("breakpoints.follower_breakpoint", "Follower", "_hit", "stop"),
        ("breakpoints.lifecycle", "Breakpoints", "_changed", "resumed"),
    ],
    ids=["condition", "symbols", "resumed"],
)
def test_ctrl_c_amid_a_ranks_hit_ends_commands_that_go_on(gdb: Path, tmp_path: Path, place: tuple[str, ...]) -> None:
    """One that came as GDB asked whether to stop was lost; one before the program ran on took the breakpoint away."""
    ticks = compile_program("rankcc", tmp_path, "ticks.c")  # another rank stops each time
    check_that_commands_end(gdb, ticks, "tick", tmp_path, *place)


def check_that_commands_end(gdb: Path, program: Path, place: str, folder: Path, *interrupted: str) -> None:
    """Interrupt what is named by module, class and function, each fifth time that it is called amid another one."""
    script = folder / "interrupted.py"
    script.write_text(INTERRUPTED.format(**dict(zip(("module", "owner", "function", "caller"), interrupted))))
    job = [built("rankrun"), "-n", RANKS, program, 200]
    with terminal(gdb, "-ex", f"source {EXTENSION}", "--args", *job) as user:
        user.wait_for(PROMPT)
        for line in ("tbreak MPI_Comm_rank", "run", f"break {place}", f"source {script}"):
            user.ask(line)
        user.ask(r'python gdb.execute("commands\nsilent\ncontinue\nend")')
        said = user.ask("continue")
    assert "exited" not in said, said
