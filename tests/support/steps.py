"""How much work something takes, whatever else the machine does meanwhile: counted, never timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(work: Callable[[], object]) -> int:
    """The instructions of Python's that it executes; one that calls into C counts as one."""
    taken = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal taken
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        taken += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return taken
