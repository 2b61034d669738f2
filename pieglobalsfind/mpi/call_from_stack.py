"""Which MPI call a suspended rank is in, from its stack, where the runtime does not publish it.

Takes ranks that a runtime's own data describe, and a walker; gives them as blocked in that call, with its peer, tag and
communicator where the runtime's requests or the call's arguments tell them. A rank whose stack can't be walked stays as
it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Optional

from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import BLOCKED, HOOK, OWN_THREAD, READY, RUNNING, Rank, RankTable, Waiting
from pieglobalsfind.target import Target

if TYPE_CHECKING:  # the name of a call tells without walking
    from pieglobalsfind.decoders.ampi.requests import AmpiRequests
    from pieglobalsfind.decoders.smpi.requests import Requests
    from pieglobalsfind.stacks.call_tree import Call
    from pieglobalsfind.stacks.unwind import Walker

TIERS = ("runtime", HOOK)  # where the runtime publishes no calls
# The profiling names (MPI 4.1, 15.2) are the same calls, and so are AMPI's own names (AMPI_Recv, APMPI_Recv), which are
# the only ones where AMPI runs on another MPI; what AMPI has beyond MPI, and its way to a rank's main, are none.
AMPI_OWN = r"Main|Migrate|Evacuate|Load_|Yield|Suspend|Resume|\w+_Setup"
AMPI, SMPI, S4U = "AMPI", "SMPI", "SimGrid S4U"
OF_THREADS = ("PiP", SMPI, S4U)  # whose ranks are kernel threads where there is no layout of contexts
AWAITS_TURN = "simgrid::kernel::context::ThreadContext::start("
SCHEDULED = 8  # where in a CthThread it is (threads.C of Charm++, from 6.0 on)
MOST_SCHEDULED = 1 << 16  # more makes no sense
MPI_CALL = re.compile(rf"(?:P|AP?(?!MPI_(?:{AMPI_OWN})))?(MPI_[A-Z]\w*)")


class RequestsOf:
    """The requests that a runtime keeps, of one moment, read when the first rank needs them."""

    def __init__(self, target: Target, table: RankTable) -> None:
        self._target = target
        self._table = table

    @cached_property
    def smpi(self) -> Requests:
        """SMPI's."""
        from pieglobalsfind.decoders.smpi.requests import Requests

        return Requests(self._target, self._table)

    @cached_property
    def ampi(self) -> AmpiRequests:
        """AMPI's."""
        from pieglobalsfind.decoders.ampi.requests import AmpiRequests

        return AmpiRequests(self._target, self._table)


def as_blocked(
    target: Target, table: RankTable, walker: Walker, rank: Rank, requests: Optional[RequestsOf] = None
) -> Rank:
    """The rank as blocked in the outermost MPI call of its stack; unchanged where the runtime publishes such calls.

    A rank that is ready again stays ready, with the call that it has not left. `requests` are of this moment.
    """
    if rank.evidence.tier not in TIERS or not (_is_suspended(rank) or _is_task(table, rank)):
        return rank
    try:
        calls = walker.stack(rank).calls
        if rank.state == RUNNING and any(map(awaits_turn, calls)):
            rank = replace(rank, state=READY, context=OWN_THREAD)
        name = outermost_call(call.function for call in calls)
        if name is None:
            return rank
        requests = requests or RequestsOf(target, table)
        if table.runtime == SMPI:
            return _by_requests(requests.smpi, walker, rank, name)
        waiting = requests.ampi.waiting(rank, name) if table.runtime == AMPI else None
        waiting = waiting or _by_arguments(table, walker, rank, name)
        if rank.state == RUNNING:
            return replace(rank, waiting=waiting)
        return replace(rank, state=READY if _is_scheduled(target, table, rank) else BLOCKED, waiting=waiting)
    except RanklensError:
        return rank


def _is_suspended(rank: Rank) -> bool:
    return rank.state == READY and isinstance(rank.context, int)


def _is_task(table: RankTable, rank: Rank) -> bool:
    """Whether it is a kernel thread of its own: it runs, or is the kernel's to run, also while it waits in a call."""
    return rank.state == RUNNING and are_threads(table)


def are_threads(table: RankTable) -> bool:
    """Whether each rank is a kernel thread of its own."""
    return table.runtime in OF_THREADS and not table.context_layout


def awaits_turn(call: Call) -> bool:
    """Whether a call is where an actor of SimGrid's that is a kernel thread waits until SimGrid lets it go on."""
    return call.function.startswith(AWAITS_TURN)


def outermost_call(functions: Iterable[str]) -> Optional[str]:
    """The first MPI call, functions' outermost first; None if a stack has none."""
    names = (MPI_CALL.fullmatch(function.partition("(")[0]) for function in functions)
    return next((name[1] for name in names if name is not None), None)


def _by_arguments(table: RankTable, walker: Walker, rank: Rank, name: str) -> Waiting:
    """The call with its peer, tag and communicator, as far as its arguments on the stack tell them."""
    from pieglobalsfind.decoders.mpi_constants import convention_of
    from pieglobalsfind.mpi.call_signatures import waiting
    from pieglobalsfind.stacks.frame_arguments import stack_of

    stack = stack_of(walker, rank)
    for frame in reversed(range(len(stack) if stack is not None else 0)):
        if stack is not None and outermost_call(reversed(stack.functions(frame))) == name:
            convention = convention_of(table, stack.library(frame))
            return waiting(stack, frame, name, rank.rank, convention) if convention is not None else Waiting(name)
    return Waiting(name)


def _by_requests(requests: Requests, walker: Walker, rank: Rank, name: str) -> Rank:
    """The rank with what its call waits for, as SMPI's own requests tell it."""
    waiting, is_on_its_way = requests.waiting(rank, walker.stack_pointer_now(rank), name)
    state = rank.state if rank.state == RUNNING else READY if is_on_its_way else BLOCKED
    return replace(rank, state=state, waiting=waiting)


def _is_scheduled(target: Target, table: RankTable, rank: Rank) -> bool:
    """Whether a thread of Charm++ waits for its turn alone: a CthThread begins with its token and that count."""
    if table.runtime != AMPI or not rank.thread:
        return False
    try:
        scheduled = int.from_bytes(target.read(rank.thread + SCHEDULED, 4), "little", signed=True)
    except MemoryUnreadable:  # a snapshot may be without it
        return False
    return 0 < scheduled <= MOST_SCHEDULED


def with_calls(target: Target, table: RankTable, walker: Walker) -> RankTable:
    """The table with every rank `as_blocked`; of a running job only those that stood still meanwhile."""
    if table.evidence.tier not in TIERS:
        return table
    requests = RequestsOf(target, table)
    ranks = [as_blocked(target, table, walker, rank, requests) for rank in table.ranks]
    if target.is_live:
        from pieglobalsfind.decoders import decode

        after = {rank.rank: rank for rank in decode(target).ranks}
        ranks = [
            now if now is was or _stood_still(was, after.get(was.rank)) else was for was, now in zip(table.ranks, ranks)
        ]
    return replace(table, ranks=tuple(ranks))


def _stood_still(before: Rank, after: object) -> bool:
    return isinstance(after, Rank) and (after.state, after.context) == (before.state, before.context)
