"""`rank tree [SET]`: all ranks' stacks in one call tree, each call with the ranks that are in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pieglobalsfind.debugger.declare import Block, Debugger, Finding, TextBlock
from pieglobalsfind.errors import ObjectFileError, RanklensError, UsageError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import fold, fold_calls, runtime_path
from pieglobalsfind.stacks import call_tree
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.frame import Frame


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Merge the stacks of a set of ranks into a tree."""
    words = text.split()
    if len(words) > 1:
        raise UsageError("`rank tree` takes one set of ranks", rankset.HINT)
    job = debugger.job()
    chosen = rankset.parse(words[0]) if words else rankset.ALL
    root = call_tree.Node("")
    without: dict[str, list[int]] = {}
    for number in debugger.counted(job.select(chosen, debugger.location)):
        with gathered(without, number):
            root.add(number, calls(debugger, job.of(number), number))
    if root.ranks or not without:
        yield TextBlock("\n".join(call_tree.lines(root)) or "No ranks")
    for sentence, numbers in without.items():
        yield Finding(f"no stack of {rankset.compact(numbers)}: {sentence}")


@contextmanager
def gathered(without: dict[str, list[int]], number: int) -> Iterator[None]:
    """Enter why a rank has no stack in words that are the same for every rank."""
    try:
        yield
    except RanklensError as error:
        without.setdefault(error.sentence.replace(f"rank {number} ", "it ", 1), []).append(number)


def calls(debugger: Debugger, moment: ProcessView, number: int) -> list[Call]:
    """A rank's stack, outermost first; raises `RanklensError` if it has none.

    Without the debugger's frames, which take a hundred times as long; with them where libdw is missing.
    """
    try:
        walked = moment.walker.stack(moment.rank(number))
    except ObjectFileError:
        return by_frames(debugger, moment, number)
    if walked.ends:
        return by_frames(debugger, moment, number)
    if not debugger.folds_runtime:
        return list(walked.calls)
    return list(fold_calls(runtime_path(moment.table, moment.translator), walked.calls))


def by_frames(debugger: Debugger, moment: ProcessView, number: int) -> list[Call]:
    """The same by the debugger's frames."""
    frames = debugger.frames(number)
    shown = list(fold(moment, frames, lambda frame: frame.pc).shown if debugger.folds_runtime else frames)
    return [call(frame) for frame in reversed(shown)]


def call(frame: Frame) -> Call:
    """Return a frame as a node of the call tree."""
    return Call(frame.function or "??", frame.file, frame.line, frame.library)
