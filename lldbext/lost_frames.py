"""The frames of a suspended rank that LLDB does not come to: its stacks end behind some functions.

Takes the frames that LLDB has; gives what elfutils' libdw finds behind them. LLDB's own commands do not know these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.facts import replace
from pieglobalsfind.frame import Frame
from pieglobalsfind.model import Absent
from pieglobalsfind.moment import Moment
from pieglobalsfind.suspended import from_registers


def behind(moment: Moment, number: int, known: Sequence[Any]) -> Iterator[Frame]:
    """Up to `main`, or else to where the runtime enters the rank; none where nobody comes further.

    `known`: LLDB's frames, innermost first. Of those inlined at one place the first has the true address.
    """
    rank = moment.rank(number)
    if isinstance(rank.context, Absent):
        return
    try:
        found = from_registers(moment, moment.contexts.registers(rank)).frames
    except RanklensError:  # no libdw, or the context can't be read: then LLDB's frames are all there is
        return
    pc = next(one.GetPC() for one in known if one.GetCFA() == known[-1].GetCFA())
    at = max((index for index, one in enumerate(found) if one.pc == pc), default=len(found))
    for level, one in enumerate(found[at + 1 :], len(known)):
        yield replace(one, level=level)
        if one.function == "main":
            return
