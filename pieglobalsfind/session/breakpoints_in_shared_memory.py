"""Refuse a breakpoint in memory that ranks share as processes: it would kill those that are not attached.

Takes a moment and an address; says which ranks would run into a breakpoint there without the debugger behind them.
Nothing is attached to or stopped.
"""

from __future__ import annotations

from typing import Optional

from pieglobalsfind.model import EXITED, MIGRATED_OUT, Absent, Rank, Rebase
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets import in_address_space


def danger(moment: ProcessView, address: int) -> Optional[str]:
    """Why no breakpoint may be put at an address, None if one may."""
    owner = moment.translator.owner(address)
    others = [rank for rank in moment.table.ranks if is_task(rank) and owner.rank in (None, rank.rank)]
    others = [other for other in others if not is_attached(moment, other)]
    if not others:
        return None
    processes = ", ".join(str(other.address_space) for other in others[:8]) + (", ..." if len(others) > 8 else "")
    return (
        f"it would kill rank {compact([other.rank for other in others])}: these run in processes ({processes}) "
        "that share this memory and that the debugger is not attached to; attach to a rank's own process to break in "
        "that rank"
    )


def is_task(rank: Rank) -> bool:
    """Whether the rank is a process of its own that shares its copies' memory with others."""
    shares = any(isinstance(placement, Rebase) for placement in rank.placements)
    return bool(rank.address_space) and shares and rank.state not in (EXITED, MIGRATED_OUT)


def is_attached(moment: ProcessView, rank: Rank) -> bool:
    """A rank whose process has not begun yet has no kernel thread."""
    return rank.kernel_thread != 0 and not isinstance(in_address_space(moment.target, rank.address_space), Absent)
