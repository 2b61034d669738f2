"""Which MPI call a suspended rank is in, from its stack, where the runtime does not publish it.

Takes ranks that a runtime's own data told of, and a walker; gives them as blocked in that call. Peer, tag and
communicator are not guessed. A rank whose stack can't be walked stays as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pieglobalsfind.decoders.kept import TIER
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.facts import replace
from pieglobalsfind.model import BLOCKED, READY, Rank, RankTable, Waiting
from pieglobalsfind.target import Target

if TYPE_CHECKING:  # the name of a call tells without walking
    from pieglobalsfind.stack_walk import Walker

TIERS = ("runtime", TIER)  # where nobody publishes calls
# The profiling names (MPI 4.1, 15.2) are the same calls, and so are AMPI's own names (AMPI_Recv, APMPI_Recv), which are
# the only ones where AMPI runs on another MPI; what AMPI has beyond MPI, and its way to a rank's main, are none.
AMPI_OWN = r"Main|Migrate|Evacuate|Load_|Yield|Suspend|Resume|\w+_Setup"
MPI_CALL = re.compile(rf"(?:P|AP?(?!MPI_(?:{AMPI_OWN})))?(MPI_[A-Z]\w*)")


def as_blocked(walker: Walker, rank: Rank) -> Rank:
    """The rank as blocked in the outermost MPI call of its stack; unchanged where the runtime publishes such calls."""
    if rank.evidence.tier not in TIERS or rank.state != READY or not isinstance(rank.context, int):
        return rank
    try:
        calls = walker.stack(rank).calls
    except RanklensError:
        return rank
    names = (MPI_CALL.fullmatch(one.function.partition("(")[0]) for one in calls)
    name = next((one[1] for one in names if one is not None), None)
    return replace(rank, state=BLOCKED, waiting=Waiting(name)) if name else rank


def with_calls(target: Target, table: RankTable, walker: Walker) -> RankTable:
    """The table with every rank `as_blocked`; of a running job only those that stood still meanwhile."""
    if table.evidence.tier not in TIERS:
        return table
    found = [as_blocked(walker, one) for one in table.ranks]
    if target.is_live:
        from pieglobalsfind.decoders import decode

        after = {one.rank: one for one in decode(target).ranks}
        found = [
            now if now is was or _stood_still(was, after.get(was.rank)) else was for was, now in zip(table.ranks, found)
        ]
    return replace(table, ranks=tuple(found))


def _stood_still(before: Rank, after: object) -> bool:
    return isinstance(after, Rank) and (after.state, after.context) == (before.state, before.context)
