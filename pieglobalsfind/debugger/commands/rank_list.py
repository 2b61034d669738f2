"""`rank list [SET]`: what every rank does."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Column, Debugger, Finding, Table, Text
from pieglobalsfind.debugger.wording import element_text, state_word, waiting_text
from pieglobalsfind.errors import RanklensError, TargetEndedError, UsageError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, STARTING, STATES, UNKNOWN_STATE, Rank
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session import runtime_frames
from pieglobalsfind.session.job_view import JobView
from pieglobalsfind.session.process_view import ProcessView

MOST_LOCATIONS = 4096  # ranks up to which each one's stack is walked
NAME = "rank list"
SHORT_STATE = "--state"

COLUMNS = (
    Column(""),
    Column("rank", numeric=True),
    Column("state"),
    Column("PE", numeric=True),
    Column("thread", numeric=True),
    Column("waits in", flexible=True),
)
PROCESS = Column("process")
LOCATED = (Column("where", flexible=True),)


def run(face: Debugger, text: str) -> Iterator[Block]:
    job = face.job()
    chosen, state = arguments(text)
    found = map(job.shown, job.select(chosen, face.location))
    shown = {rank.rank: rank for rank in found if state in ("", rank.state)}
    if shown:
        located = len(shown) <= MOST_LOCATIONS
        columns = (*((PROCESS,) if job.spans_processes else ()), *(LOCATED if located else ()))
        rows = tuple(row(face, job, shown[one], located) for one in face.counted(tuple(shown)))
        yield Table((*COLUMNS, *columns), rows)
    else:
        yield Text("No ranks")
    for warning in job.warnings:
        yield Finding(warning)


def arguments(text: str) -> tuple[rankset.RankSet, str]:
    """`[SET] [--state S]`: the set (all ranks if none is named) and the state ("": any)."""
    words, state = text.split(), ""
    if SHORT_STATE in words:
        at = words.index(SHORT_STATE)
        state = "".join(words[at + 1 : at + 2])
        if state not in (*STATES, UNKNOWN_STATE):
            raise UsageError(f"{state!r} is no state", "states are " + ", ".join(STATES))
        del words[at : at + 2]
    if len(words) > 1:
        raise UsageError("`rank list` takes one set of ranks", rankset.HINT)
    return (rankset.parse(words[0]) if words else rankset.ALL), state


def where(face: Debugger, moment: ProcessView, rank: Rank) -> str:
    """The innermost user function: by the files' unwind tables, else by the debugger's frames; "" if there is none."""
    if rank.state in (STARTING, EXITED, MIGRATED_OUT):
        return ""
    try:
        call = runtime_frames.location(moment.table, moment.translator, moment.walker, rank)
    except TargetEndedError:
        raise
    except RanklensError:
        return face.location(rank.rank)
    if call is None:
        return face.location(rank.rank)
    return f"{call.function} at {call.file.rpartition('/')[2]}:{call.line}" if call.file else call.function


def row(face: Debugger, job: JobView, rank: Rank, located: bool) -> tuple[str, ...]:
    return (
        "*" if rank.rank == face.selected else "",
        str(rank.rank),
        state_word(rank),
        element_text(rank),
        str(rank.kernel_thread or ""),
        waiting_text(rank.waiting) if rank.waiting else "",
        *((job.process(rank.rank).name,) if job.spans_processes else ()),
        *((where(face, job.of(rank.rank), rank),) if located else ()),
    )
