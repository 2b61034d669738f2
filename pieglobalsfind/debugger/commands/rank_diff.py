"""`rank diff EXPR [SET]`: an expression in many ranks, equal values together."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.commands.rank_print import answers, parse
from pieglobalsfind.debugger.declare import Block, Debugger, Text
from pieglobalsfind.ranks import rankset


def run(face: Debugger, text: str) -> Iterator[Block]:
    groups: dict[str, list[int]] = {}
    for number, value in answers(face, parse(text, "rank diff")):
        groups.setdefault(str(value), []).append(number)
    if not groups:
        yield Text("No ranks")
    for value, numbers in sorted(groups.items(), key=lambda group: (-len(group[1]), group[1])):
        yield Text(f"{rankset.compact(numbers)}: {value}")
