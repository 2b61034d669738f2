"""The part of a plan's work that runs inside GDB (sourced by it).

Takes the plan named by the environment, and the target that GDB was given on its command line.
Never judges an answer: it writes down what GDB said, word by word.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import gdb

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.support.host.plan import PLAN_VARIABLE, STEP, Answer, Plan, Query, save_answers
from tests.support.mpich import rank_in

SETTINGS = (
    "set pagination off",
    "set confirm off",
    "set width 0",
    "set height 0",
    "set startup-with-shell off",
    "set breakpoint pending on",
    "set debuginfod enabled off",
    "set style enabled off",
)

ARGUMENTS = re.compile(r"<[^<>]*>|\([^()]*\)")


def bare_name(frame: gdb.Frame) -> str:
    """A frame's function without template and call arguments: `Grid::solve` for `Grid<int>::solve(double)`."""
    name, count = frame.name() or "", 1
    while count:
        name, count = ARGUMENTS.subn("", name)
    return name


def frames() -> Iterator[gdb.Frame]:
    frame: Optional[gdb.Frame] = gdb.newest_frame()
    while frame is not None and frame.is_valid():
        yield frame
        frame = frame.older()


def enter(function: str) -> None:
    """Select the newest frame of a function (`frame function` crashes GDB 13 with several inferiors)."""
    for frame in frames():
        if bare_name(frame) == function:
            frame.select()
            return
    raise gdb.error(f"no frame of {function} on the stack: {[frame.name() for frame in frames()]}")


def ask(rank: int, query: Query) -> Answer:
    try:
        if query.frame and not query.frame.startswith(STEP):
            enter(query.frame)
        text = gdb.execute(query.command, to_string=True)
        if query.frame.startswith(STEP):  # GDB tells of a stop elsewhere
            text += gdb.execute("frame", to_string=True)
    except gdb.error as error:
        text = f"error: {error}"
    return Answer(rank, query, text)


def report(meeting: str, rank: int) -> None:
    """Tell the controller that the answers are written, and stay until it closes the meeting."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect("\0" + meeting)
        line.sendall(f"{rank}\n".encode())
        line.recv(1)


def work(plan: Plan) -> None:
    for command in (*SETTINGS, *plan.prepare):
        gdb.execute(command)
    own = 0 if plan.ranks else rank_in(os.environ)
    for rank in plan.ranks or (own,):
        if plan.ranks:
            gdb.execute(f"rank {rank}", to_string=True)
        queries = plan.queries + (plan.walk if rank == plan.walker else ())
        save_answers(Path(plan.answers), rank, [ask(rank, query) for query in queries])
    if plan.meeting:
        report(plan.meeting, own)


work(Plan.load(Path(os.environ[PLAN_VARIABLE])))
