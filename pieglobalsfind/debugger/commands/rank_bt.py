"""`rank bt [SET] [full]`: backtraces of ranks, from the innermost frame to the rank's entry."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Debugger, Finding, TextBlock
from pieglobalsfind.debugger.wording import frame_text, state_text
from pieglobalsfind.errors import RanklensError, TargetEndedError, UsageError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import fold


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Print the backtraces of a set of ranks."""
    job = debugger.job()
    chosen, full = arguments(debugger, text)
    numbers = job.select(chosen, debugger.location)
    if not numbers:
        yield TextBlock("No ranks")
    for position, number in enumerate(debugger.counted(numbers)):
        gap = "\n" if position else ""
        yield TextBlock(f"{gap}Rank {number}, {state_text(job.shown(number))}:")
        try:
            yield TextBlock(backtrace(debugger, job.of(number), number, full))
        except RanklensError as error:
            if len(numbers) == 1 or isinstance(error, TargetEndedError):
                raise
            yield Finding(error.sentence, error.hint)


def backtrace(debugger: Debugger, moment: ProcessView, number: int, full: bool) -> str:
    """A line per frame, and before them how many of the runtime are left out."""
    frames = debugger.frames(number, variables=full)
    if not debugger.folds_runtime:
        return "\n".join(map(frame_text, frames))
    folded = fold(moment, frames, lambda frame: frame.pc)
    return "\n".join([*filter(None, [folded.note]), *map(frame_text, folded.shown)])


def arguments(debugger: Debugger, text: str) -> tuple[rankset.RankSet, bool]:
    """`[SET] [full]`: the set (the selected rank, or all if none is) and whether locals are wanted."""
    words = text.split()
    full = words[-1:] == ["full"]
    if full:
        words.pop()
    if len(words) > 1:
        raise UsageError("`rank bt` takes one set of ranks, and the word full", rankset.HINT)
    if words:
        return rankset.parse(words[0]), full
    return (rankset.ALL if debugger.selected is None else (rankset.Span(debugger.selected, debugger.selected),)), full
