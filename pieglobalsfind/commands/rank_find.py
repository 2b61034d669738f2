"""`rank find VALUE [SET]`: which globals of which ranks hold a value."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind import rankset
from pieglobalsfind.command import Block, Command, Face


def run(face: Face, text: str) -> Iterator[Block]:
    from pieglobalsfind.value_search import found  # late: types of debug information take long to import

    yield from found(face, text)


COMMAND = Command(
    name="rank find",
    arguments="VALUE [SET]",
    summary="Find the globals that hold a value, and on which ranks.",
    description="VALUE is a number. Elements and members are looked at too, of every type that can hold it.\n"
    f"For SET {rankset.HINT}.",
    run=run,
)
