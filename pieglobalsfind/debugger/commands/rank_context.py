"""`rank context KIND ADDRESS`: the backtrace of a suspended user-level thread of any program, by what it has saved."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Debugger, TextBlock
from pieglobalsfind.debugger.wording import frame_text
from pieglobalsfind.decoders import saved_context
from pieglobalsfind.errors import UsageError

NONE = "none"
HINT = "for instance: rank context fcontext 0x7ffff7d8ef40, rank context ucontext &fibers[3].context"


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Let frames begin at a saved context."""
    kind, _, expression = text.strip().partition(" ")
    if kind == NONE and not expression:
        debugger.enter(None, "you asked for none")
        yield TextBlock("[Frames are the thread's own]")
        return
    if not kind or not expression:
        raise UsageError("a context is a kind and an address", HINT)
    address = debugger.address(expression.strip())
    registers = saved_context.registers(debugger.target(), kind, address)
    backtrace = debugger.enter(registers, f"the {kind} at {address:#x} is")
    yield TextBlock(f"[{kind} at {address:#x}]")
    for frame in backtrace.frames:
        yield TextBlock(frame_text(frame))
    if backtrace.ends:
        yield TextBlock(f"(it ends here: {backtrace.ends})")
