"""The part of a plan's work that runs inside LLDB (imported by it); `tests/support/host/in_gdb.py` is GDB's.

Takes the plan named by the environment, and the process that LLDB was given on its command line. Never judges an
answer: it writes down what LLDB said, word by word.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lldb

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.support.host.plan import PLAN_VARIABLE, Answer, Plan, Query, save_answers

ARGUMENTS = re.compile(r"<[^<>]*>|\([^()]*\)")
SETTINGS = ("settings set use-color false", "settings set target.prefer-dynamic-value no-dynamic-values")


def bare_name(frame: Any) -> str:
    """A frame's function without template and call arguments: `Grid::solve` for `Grid<int>::solve(double)`."""
    name, count = str(frame.GetFunctionName() or "").replace("(anonymous namespace)::", ""), 1
    while count:
        name, count = ARGUMENTS.subn("", name)
    return (name.split(" ")[-1] if " " in name else name).removeprefix("::")


class Asker:
    """Asks one debugger."""

    def __init__(self, debugger: Any, screen: Path) -> None:
        self._debugger = debugger
        self._process = debugger.GetSelectedTarget().GetProcess()
        self._screen = screen.open("w+")
        debugger.SetOutputFile(self._screen)
        debugger.SetErrorFile(self._screen)

    def run(self, command: str) -> str:
        """What LLDB prints, errors included: by the command's result or, for some that we carry out, at once."""
        start = self._screen.seek(0, os.SEEK_END)
        result = lldb.SBCommandReturnObject()
        context = lldb.SBExecutionContext(self._process.GetSelectedThread().GetSelectedFrame())
        self._debugger.GetCommandInterpreter().HandleCommand(command, context, result, False)
        self._screen.seek(start)
        return self._screen.read() + (result.GetOutput() or "") + (result.GetError() or "")

    def frames(self) -> Iterator[Any]:
        yield from self._process.GetSelectedThread()

    def enter(self, function: str) -> bool:
        """Select the newest frame of a function."""
        for frame in self.frames():
            if bare_name(frame) == function:
                self._process.GetSelectedThread().SetSelectedFrame(frame.GetFrameID())
                return True
        return False

    def answer(self, rank: int, query: Query) -> Answer:
        if query.frame and not self.enter(query.frame):
            names = [bare_name(frame) for frame in self.frames()]
            return Answer(rank, query, f"error: no frame of {query.frame} on the stack: {names}")
        if not query.frame:
            self._process.GetSelectedThread().SetSelectedFrame(0)
        return Answer(rank, query, self.run(query.command))


def work(debugger: Any, plan: Plan) -> None:
    own = int(os.environ.get("PMI_RANK", "0"))
    asker = Asker(debugger, Path(plan.answers) / f"screen.{own}")
    for command in (*SETTINGS, *plan.prepare):
        asker.run(command)
    for rank in plan.ranks or (own,):
        if plan.ranks:
            asker.run(f"rank {rank}")
        save_answers(Path(plan.answers), rank, [asker.answer(rank, query) for query in plan.queries])


def __lldb_init_module(debugger: Any, internal_dict: dict[str, Any]) -> None:
    debugger.SetAsync(False)
    work(debugger, Plan.load(Path(os.environ[PLAN_VARIABLE])))
