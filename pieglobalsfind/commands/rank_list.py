"""`rank list [SET]`: what every rank does."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind import rankset
from pieglobalsfind.command import Block, Column, Command, Face, Finding, Moment, Table, Text
from pieglobalsfind.commands.wording import element_text, waiting_text
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, STARTING, STATES, Rank

MOST_LOCATIONS = 4096  # ranks up to which each one's stack is walked
SHORT_STATE = "--state"

COLUMNS = (
    Column(""),
    Column("rank", numeric=True),
    Column("state"),
    Column("PE", numeric=True),
    Column("thread", numeric=True),
    Column("waits in", flexible=True),
    Column("where", flexible=True),
)


def run(face: Face, text: str) -> Iterator[Block]:
    moment = face.moment()
    chosen, state = arguments(text)
    found = map(moment.shown, moment.select(chosen, face.location))
    ranks = [rank for rank in found if state in ("", rank.state)]
    located = len(ranks) <= MOST_LOCATIONS
    if ranks:
        columns = COLUMNS if located else COLUMNS[:-1]
        shown = {rank.rank: rank for rank in ranks}
        rows = (row(face, moment, shown[one], located)[: len(columns)] for one in face.counted(tuple(shown)))
        yield Table(columns, tuple(rows))
    else:
        yield Text("No ranks")
    for warning in moment.table.warnings:
        yield Finding(warning)


def arguments(text: str) -> tuple[rankset.RankSet, str]:
    """`[SET] [--state S]`: the set (all ranks if none is named) and the state ("": any)."""
    words, state = text.split(), ""
    if SHORT_STATE in words:
        at = words.index(SHORT_STATE)
        state = "".join(words[at + 1 : at + 2])
        if state not in STATES:
            raise UsageError(f"{state!r} is no state", "states are " + ", ".join(STATES))
        del words[at : at + 2]
    if len(words) > 1:
        raise UsageError("`rank list` takes one set of ranks", rankset.HINT)
    return (rankset.parse(words[0]) if words else rankset.ALL), state


def where(face: Face, moment: Moment, rank: Rank) -> str:
    """The innermost user function: by the files' unwind tables, else by the debugger's frames; "" if there is none."""
    if rank.state in (STARTING, EXITED, MIGRATED_OUT):
        return ""
    try:
        call = moment.walker.location(rank)
    except RanklensError:
        return face.location(rank.rank)
    if call is None:
        return face.location(rank.rank)
    return f"{call.function} at {call.file.rpartition('/')[2]}:{call.line}" if call.file else call.function


def row(face: Face, moment: Moment, rank: Rank, located: bool) -> tuple[str, ...]:
    return (
        "*" if rank.rank == face.selected else "",
        str(rank.rank),
        rank.state,
        element_text(rank),
        str(rank.kernel_thread or ""),
        waiting_text(rank.waiting) if rank.waiting else "",
        where(face, moment, rank) if located else "",
    )


COMMAND = Command(
    name="rank list",
    arguments="[SET] [--state STATE]",
    summary="List virtual ranks: state, where they run, what they wait for, innermost user function.",
    description=f"The selected rank is marked. For SET {rankset.HINT}.",
    run=run,
    completes="ranks",
)
