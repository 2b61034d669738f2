"""Which ranks of a process `--rank SET` means: one grammar with the debuggers' commands.

Takes a job and a set; gives the ranks, and why it is unknown whether others are meant: a rank's function
is known by its stack, which a running one may not have.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, STARTING
from pieglobalsfind.ranks import rankset
from pieglobalsfind.ranks.rankset import RankSet
from pieglobalsfind.session.runtime_frames import location

from .job import Job, with_waiting_calls

HELP = "0-3,7, all, a state such as blocked, or /REGEX/ on the innermost function of the program"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument("--rank", metavar="SET", default="all", type=checked, help=HELP)


def checked(text: str) -> str:
    """What the user wrote; raises `UsageError` if it is not a set (nothing at all is refused as of every option)."""
    if text:
        rankset.parse(text)
    return text


@dataclass(frozen=True)
class Chosen:
    """The ranks that are meant, ascending, and those of which the reason says why it is not known."""

    ranks: tuple[int, ...]
    unknown: dict[int, str]


def among(job: Job, wanted: RankSet) -> Chosen:
    """Those ranks of a set that the process has."""
    ranks = {rank.rank: rank for rank in job.table.ranks}
    unknown: dict[int, str] = {}

    def function_of(number: int) -> str:
        if ranks[number].state in (STARTING, EXITED, MIGRATED_OUT):
            return ""
        try:
            call = location(job.table, job.translator, job.walker, ranks[number])
        except RanklensError as error:
            why = re.sub(f"^rank {number} ", "it ", error.sentence)
            unknown[number] = f"its function is unknown, {why}"
            return ""
        return call.function if call is not None else ""

    table = with_waiting_calls(job).table if rankset.asks_for_states(wanted) else job.table
    chosen = rankset.among(wanted, table, function_of)
    return Chosen(chosen, {rank: why for rank, why in unknown.items() if rank not in chosen})


def of_one(job: Job, wanted: RankSet) -> Chosen:
    """The same of a process alone; raises `UsageError` for ranks that it does not have."""
    rankset.check(wanted, job.table)
    return among(job, wanted)


def by_reason(missing: dict[int, str]) -> Iterator[tuple[str, Sequence[int]]]:
    """Each reason with the ranks that have it."""
    for sentence in dict.fromkeys(missing.values()):
        yield sentence, [rank for rank, reason in missing.items() if reason == sentence]
