"""Sets of ranks as people write them: the one parser and the one formatter.

Takes text such as `3`, `0-3,7`, `all`, `running`, `blocked` or `/REGEX/` (on the innermost user function), and a rank
table. It never enumerates what is not there: `0-4000000000` costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import STATES, UNKNOWN_STATE, RankTable

HINT = "write 3, 0-3,7, all, a state such as running or blocked, or /REGEX/ on the innermost user function"

EVERY = "all"
_NUMBERS = r"(\d{1,10})(?:-(\d{1,10}))?"

FunctionOf = Callable[[int], str]
"""Names the innermost user function of a rank; "" if it is unknown."""


@dataclass(frozen=True)
class Span:
    """The ranks from `first` to `last`, both inclusive."""

    first: int
    last: int


@dataclass(frozen=True)
class InState:
    """The ranks in a state; `all` stands for any."""

    state: str


@dataclass(frozen=True)
class InFunction:
    """The ranks whose innermost user function matches a regular expression somewhere."""

    pattern: str


RankSet = tuple[Union[Span, InState, InFunction], ...]

ALL: RankSet = (InState(EVERY),)


def parse(text: str) -> RankSet:
    """The set that `text` means; raises `UsageError`."""
    parsed = recognize(text)
    if parsed is None:
        raise UsageError(f"{text!r} is not a set of ranks", HINT)
    return parsed


def recognize(text: str) -> Optional[RankSet]:
    """The set that `text` means, or None if it is something else; raises `UsageError` for a wrong `/REGEX/`."""
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return (_in_function(text[1:-1]),)
    items = [_item(word) for word in text.split(",")]
    if any(item is None for item in items):
        return None
    return tuple(item for item in items if item is not None)


def asks_for_states(chosen: RankSet) -> bool:
    """Whether the states of ranks decide which are meant."""
    return any(isinstance(state, InState) and state.state != EVERY for state in chosen)


def _item(word: str) -> Union[Span, InState, None]:
    if word == EVERY or word in (*STATES, UNKNOWN_STATE):
        return InState(word)
    numbers = re.fullmatch(_NUMBERS, word)
    if numbers is None:
        return None
    first = int(numbers.group(1))
    last = int(numbers.group(2) or first)
    return Span(first, last) if first <= last else None


def _in_function(pattern: str) -> InFunction:
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"/{pattern}/ is not a regular expression, {error}") from error
    return InFunction(pattern)


def select(chosen: RankSet, table: RankTable, function_of: FunctionOf, several: bool = False) -> tuple[int, ...]:
    """The ranks of `table` that are meant, ascending; raises `UsageError` for numbers that are not in it.

    `several`: it is the table of more than one process.
    """
    check(chosen, table, several)
    return among(chosen, table, function_of)


def among(chosen: RankSet, table: RankTable, function_of: FunctionOf) -> tuple[int, ...]:
    """Those of the ranks that are meant which `table` has, ascending: a process's part of a set for its whole job."""
    present = {rank.rank: rank.state for rank in table.ranks}
    ranks: set[int] = set()
    for item in chosen:
        if isinstance(item, Span):
            ranks |= _within(item, present)
        elif isinstance(item, InState):
            ranks |= {rank for rank, state in present.items() if item.state in (EVERY, state)}
        else:
            ranks |= {rank for rank in present if re.search(item.pattern, function_of(rank))}
    return tuple(sorted(ranks))


def check(chosen: RankSet, table: RankTable, several: bool = False) -> None:
    """Raises `UsageError` unless `table` has every number of the set; `several` as for `select`."""
    spans = [item for item in chosen if isinstance(item, Span)]
    present = {rank.rank for rank in table.ranks} if spans else set()
    for span in spans:
        within = _within(span, present)
        if len(within) != span.last - span.first + 1:
            missing = next(rank for rank in range(span.first, span.last + 1) if rank not in within)
            raise no_such_rank(missing, table, several)


def check_may_exist(chosen: RankSet, table: RankTable) -> None:
    """Raises `UsageError` if a number of the set is beyond the job's last rank, wherever its ranks are and will be."""
    beyond = [span.last for span in chosen if isinstance(span, Span) and span.last >= table.rank_count > 0]
    if beyond:
        raise no_such_rank(max(beyond), table)


def _within(span: Span, present: Iterable[int]) -> set[int]:
    return {rank for rank in present if span.first <= rank <= span.last}


def no_such_rank(rank: int, table: RankTable, several: bool = False) -> UsageError:
    """Why `rank` can't be looked at here; `several`: the table is that of more than one process."""
    here = compact(rank.rank for rank in table.ranks) or "no ranks"
    if 0 <= rank < table.rank_count:
        return UsageError(
            f"rank {rank} lives in another process of the job", f"{'these have' if several else 'this one has'} {here}"
        )
    return UsageError(f"there is no rank {rank}", f"{'these processes have' if several else 'this process has'} {here}")


def compact(ranks: Iterable[int]) -> str:
    """Ranks as a person would write them.

    >>> compact([7, 0, 2, 1])
    '0-2,7'
    """
    firsts, lasts = bounds(ranks)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in zip(firsts, lasts))


def spans_of(ranks: Iterable[int]) -> list[Span]:
    """Ranks as ascending spans that do not touch."""
    return list(map(Span, *bounds(ranks)))


def bounds(ranks: Iterable[int]) -> tuple[list[int], list[int]]:
    """The first and the last ranks of ascending spans that do not touch."""
    ordered = sorted(set(ranks))
    steps = [(before, following) for before, following in zip(ordered, ordered[1:]) if following - before > 1]
    return [*ordered[:1], *(following for _, following in steps)], [*(before for before, _ in steps), *ordered[-1:]]


def written(spans: Iterable[Span]) -> str:
    """Spans as a person would write them."""
    return ",".join(str(span.first) if span.first == span.last else f"{span.first}-{span.last}" for span in spans)
