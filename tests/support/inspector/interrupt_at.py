"""Runs a command of ours and sends its process a signal at a chosen moment of the main thread's own code.

Its words: a file to say how it went, when to strike, which signal, then the command's name and its words. When:
"never"; or "CALLS+STEPS", so many Python functions were called since the command hears signals, libraries' included,
and so many bytecodes were run then; or "MODULE.FUNCTION*TIMES", as that function is called. What is said: "struck"; of
a run to the end, how many calls there were until all was loaded, and in all.

Handlers run as the signal is sent, so this is harder than a signal from outside, which waits for the next call or loop.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import FrameType
from typing import Any, Optional

from pieglobalsfind.shell import signals

NEVER = 1 << 62


class Strike:
    """Counts calls up to its moment. From there on nothing is traced any more."""

    def __init__(self, report: str, when: str, number: int) -> None:
        self.report, self.number = report, number
        self.calls, self.loaded, self.calls_left, self.steps_left, self.times_left = 0, 0, NEVER, 0, 0
        self.function, self.is_done = "", False
        if "*" in when:
            self.function, _, times = when.partition("*")
            self.times_left = int(times)
        elif when != "never":
            calls, _, steps = when.partition("+")
            self.calls_left, self.steps_left = int(calls), int(steps)

    def begin(self) -> None:
        sys.settrace(self.on_call)

    def on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        self.calls += 1
        if not self.loaded and frame.f_code.co_name == "run" and name_of(frame).endswith(".command_line"):
            self.loaded = self.calls
        if self.function:
            self.times_left -= self.function == f"{name_of(frame)}.{frame.f_code.co_name}"
            if not self.times_left:
                self.now()
        elif self.calls >= self.calls_left:
            return self.count_steps(frame)
        return None

    def count_steps(self, frame: FrameType) -> Any:
        if not self.steps_left:
            self.now()
            return None
        sys.settrace(self.on_step)
        each: Optional[FrameType] = frame
        while each is not None:
            each.f_trace, each.f_trace_opcodes = self.on_step, True
            each = each.f_back
        return self.on_step

    def on_step(self, frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes = True
        self.steps_left -= event == "opcode"
        if self.steps_left > 0:
            return self.on_step
        self.now()
        return None

    def now(self) -> None:
        sys.settrace(None)
        if self.is_done:
            return
        self.is_done = True
        self.say("struck")
        os.kill(os.getpid(), self.number)

    def say(self, text: str) -> None:
        file = os.open(self.report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(file, text.encode())
        os.close(file)


def name_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def main() -> int:
    report, when, number, command, *words = sys.argv[1:]
    sys.argv[:] = [command, *words]
    strike, install = Strike(report, when, int(number)), signals.install

    def install_and_begin() -> None:
        install()
        strike.begin()

    signals.install = install_and_begin
    package = {"inspector": "ranklens_inspector", "pieglobalsfind": "pieglobalsfind"}[command]
    if sys.stderr.isatty():
        setattr(import_module(f"{package}.terminal.progress"), "PATIENCE", 0.0)  # noqa: B010 - the bar is there from the beginning
    status = int(import_module(f"{package}.cli").main(words))
    sys.settrace(None)
    if not strike.is_done:
        strike.say(f"{strike.loaded} {strike.calls}")
    return status


if __name__ == "__main__":
    sys.exit(main())
