"""`pieglobalsfind ADDRESS|EXPRESSION`: rank, object, symbol, line and original of an address."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Debugger, TextBlock
from pieglobalsfind.debugger.wording import owner_text
from pieglobalsfind.errors import UsageError


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Show which rank owns an address."""
    if not text.strip():
        raise UsageError("no address is given", "for instance: pieglobalsfind $pc, or pieglobalsfind &counter")
    moment = debugger.moment()
    address = debugger.address(text.strip())
    yield TextBlock(f"{address:#x}: {owner_text(moment, moment.translator.owner(address))}")
