"""`rank`, `rank N` and `rank none`: which rank the debugger's own commands mean."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pieglobalsfind.debugger.declare import Block, Debugger, TextBlock
from pieglobalsfind.debugger.wording import frame_text, state_text
from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.runtime_frames import fold


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Select a rank, or print which one is selected."""
    word = text.strip()
    if not word:
        yield TextBlock(selection_text(debugger))
        return
    if not word.isdecimal() and rankset.recognize(word) is not None:
        raise UsageError(f"`rank` selects one rank, and {word} may be several", f"`rank bt {word}` shows their stacks")
    if not word.isdecimal() or len(word) > 10:
        raise UsageError(f"{word!r} is neither a rank nor a subcommand", "`rank 3` selects one, `help rank` lists all")
    number = int(word)
    debugger.job().rank(number)
    debugger.select(number)
    job = debugger.job()
    yield TextBlock(f"[Switching to rank {number}, {state_text(job.shown(number))}{job.place(number)}]")
    frames = debugger.frames(number)
    shown = fold(job.of(number), frames, lambda frame: frame.pc).shown if debugger.folds_runtime else frames
    for frame in islice(shown, 1):
        yield TextBlock(frame_text(frame))


def selection_text(debugger: Debugger) -> str:
    """`Rank 3 is selected because it runs on the stopped thread: running on thread 4711`."""
    job = debugger.job()
    if debugger.selected is None:
        return f"No rank is selected because {debugger.reason}"
    state = state_text(job.shown(debugger.selected)) + job.place(debugger.selected)
    return f"Rank {debugger.selected} is selected because {debugger.reason}: {state}"


def run_none(debugger: Debugger, text: str) -> Iterator[Block]:
    """Select no rank."""
    if text.strip():
        raise UsageError("`rank none` takes no arguments")
    debugger.job()
    debugger.select(None)
    yield TextBlock(f"[No rank is selected: {debugger.without_rank}]")
