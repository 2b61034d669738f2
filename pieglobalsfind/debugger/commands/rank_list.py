"""`rank list [SET]`: what every rank does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pieglobalsfind.debugger.declare import Block, Column, Debugger, Finding, Table, TextBlock
from pieglobalsfind.debugger.wording import element_text, state_word, waiting_text
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import STATES, UNKNOWN_STATE, Rank
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.job_view import JobView

MOST_ROWS = 32  # ranks up to which each has a row of its own
EACH = "--all"
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
GROUPED = (
    Column(""),
    Column("ranks"),
    Column("state"),
    Column("PE", numeric=True),
    Column("thread", numeric=True),
    Column("waits in", flexible=True),
)
PROCESS = Column("process")
LOCATED = (Column("where", flexible=True),)


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Print the table of ranks."""
    job = debugger.job()
    chosen, state, each = arguments(text)
    chosen_ranks = map(job.shown, job.select(chosen, debugger.location))
    shown = {rank.rank: rank for rank in chosen_ranks if state in ("", rank.state)}
    if shown:
        located = len(shown) <= MOST_LOCATIONS
        columns = (*((PROCESS,) if job.spans_processes else ()), *(LOCATED if located else ()))
        rows = tuple(row(debugger, job, shown[number], located) for number in debugger.counted(tuple(shown)))
        if len(rows) <= MOST_ROWS or each:
            yield Table((*COLUMNS, *columns), rows)
        else:
            yield Table((*GROUPED, *columns), tuple(grouped(rows)))
            yield TextBlock(f"`{NAME} {EACH}` has a line for each rank")
    else:
        yield TextBlock("No ranks")
    for warning in job.warnings:
        yield Finding(warning)


def grouped(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Ranks that do the same in one row. Of calls whose peers differ the name alone is shown."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for cells in rows:
        _, _, state, _, _, waits, *rest = cells
        groups.setdefault((state, waits.partition(" ")[0], *rest), []).append(cells)
    for (state, call, *rest), same in groups.items():
        columns = (tuple(dict.fromkeys(column)) for column in zip(*(row_cells[:6] for row_cells in same)))
        marks, ranks, _, elements, threads, calls = columns
        yield (
            "*" if "*" in marks else "",
            rankset.compact(map(int, ranks)),
            state,
            elements[0] if len(elements) == 1 else "several",
            threads[0] if len(threads) == 1 else "several",
            calls[0] if len(calls) == 1 else call,
            *rest,
        )


def arguments(text: str) -> tuple[rankset.RankSet, str, bool]:
    """`[SET] [--state S] [--all]`: the set (all ranks if none is named), the state ("": any), each rank in a row."""
    words, state = text.split(), ""
    each = EACH in words
    words = [word for word in words if word != EACH]
    if SHORT_STATE in words:
        at = words.index(SHORT_STATE)
        state = "".join(words[at + 1 : at + 2])
        if state not in (*STATES, UNKNOWN_STATE):
            raise UsageError(f"{state!r} is not a state", "states are " + ", ".join(STATES))
        del words[at : at + 2]
    if len(words) > 1:
        raise UsageError("`rank list` takes one set of ranks", rankset.HINT)
    return (rankset.parse(words[0]) if words else rankset.ALL), state, each


def row(debugger: Debugger, job: JobView, rank: Rank, located: bool) -> tuple[str, ...]:
    """Return a rank's cells."""
    return (
        "*" if rank.rank == debugger.selected else "",
        str(rank.rank),
        state_word(rank),
        element_text(rank),
        str(rank.kernel_thread or ""),
        waiting_text(rank.waiting) if rank.waiting else "",
        *((job.process(rank.rank).name,) if job.spans_processes else ()),
        *((debugger.location(rank.rank),) if located else ()),
    )
