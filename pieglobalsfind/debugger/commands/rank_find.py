"""`rank find VALUE [SET]`: which globals of which ranks hold a value."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Debugger


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Search ranks' memory for a value."""
    from pieglobalsfind.debugger.value_search import search  # late: types of debug information take long to import

    yield from search(debugger, text)
