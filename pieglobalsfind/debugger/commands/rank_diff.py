"""`rank diff EXPR [SET]`: an expression in many ranks, equal values together; of many numbers their statistics."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.commands.rank_print import answers, parse
from pieglobalsfind.debugger.declare import Block, Debugger, TextBlock
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks import rankset
from pieglobalsfind.values.rank_statistics import DISTINCT, statistics_of


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Group ranks by an expression's value."""
    groups: dict[str, list[int]] = {}
    values: dict[int, str] = {}
    for number, value in answers(debugger, parse(text, "rank diff")):
        groups.setdefault(str(value), []).append(number)
        if not isinstance(value, Absent):
            values[number] = value
    if not groups:
        yield TextBlock("No ranks")
    distinct = len(set(values.values()))
    statistics = statistics_of(values) if distinct > DISTINCT else None
    if statistics is not None:
        yield TextBlock(f"{rankset.compact(values)}: {distinct} values, {statistics.sentence}")
        groups = {value: numbers for value, numbers in groups.items() if numbers[0] not in values}
    for value, numbers in sorted(groups.items(), key=lambda group: (-len(group[1]), group[1])):
        yield TextBlock(f"{rankset.compact(numbers)}: {value}")
