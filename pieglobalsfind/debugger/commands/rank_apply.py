"""`rank apply SET [-q] [-s] COMMAND`: one of the debugger's commands with each rank selected in turn."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Debugger, Finding, TextBlock
from pieglobalsfind.debugger.wording import state_text
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.ranks import rankset


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Run a command in each rank of a set."""
    chosen, flags, command = arguments(text)
    job = debugger.job()
    for number in debugger.counted(job.select(chosen, debugger.location)):
        output, failure = "", None
        try:
            output = debugger.execute(number, command)
        except RanklensError as error:
            if "c" not in flags and "s" not in flags:
                raise
            failure = error
        if "s" in flags and not output:
            continue
        if "q" not in flags:
            yield TextBlock(f"Rank {number}, {state_text(job.shown(number))}:")
        if failure is not None:
            yield Finding(failure.sentence if "q" not in flags else f"rank {number}: {failure.sentence}", failure.hint)
        if output:
            yield TextBlock(output.rstrip("\n"))


def arguments(text: str) -> tuple[rankset.RankSet, frozenset[str], str]:
    """`SET [-q] [-c] [-s] COMMAND`, as `thread apply` has it."""
    first, _, rest = text.strip().partition(" ")
    if not first:
        raise UsageError("no ranks and no command are given", "for instance: rank apply 0-3 bt")
    chosen, flags = rankset.parse(first), set()
    rest = rest.strip()
    while rest[:2] in ("-q", "-c", "-s") and rest[2:3] in ("", " "):
        flags.add(rest[1])
        rest = rest[2:].strip()
    if not rest:
        raise UsageError("no command to apply is given", f"for instance: rank apply {first} bt")
    return chosen, frozenset(flags), rest
