"""`pieglobalsfind ADDRESS|EXPRESSION`: rank, object, symbol, line and original of an address."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.command import Block, Face, Text
from pieglobalsfind.errors import UsageError
from pieglobalsfind.wording import owner_text


def run(face: Face, text: str) -> Iterator[Block]:
    if not text.strip():
        raise UsageError("there is no address", "for instance: pieglobalsfind $pc, or pieglobalsfind &counter")
    moment = face.moment()
    address = face.address(text.strip())
    yield Text(f"{address:#x}: {owner_text(moment, moment.translator.owner(address))}")
