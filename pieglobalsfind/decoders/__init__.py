"""From the bytes of a target to its rank table; one module for each way of telling, best first.

Takes a `Target`; gives a `RankTable`, or an error that says what is missing. Nothing is called in the target.
"""

from __future__ import annotations

from pieglobalsfind.decoders import elf_scan, rank_debug
from pieglobalsfind.errors import NotVirtualizedError
from pieglobalsfind.model import RankTable
from pieglobalsfind.target import Target

DECODERS = (rank_debug.decode, elf_scan.decode)


def decode(target: Target) -> RankTable:
    """The ranks of a target; raises `NotVirtualizedError` if there are none, `RegistryError` if theirs is damaged."""
    for decoder in DECODERS:
        table = decoder(target)
        if table is not None:
            return table
    raise NotVirtualizedError(
        f"no virtual ranks are found in {target.description}",
        "is it the process that runs them (rankrun), and has it made them yet?",
    )
