"""Why a rank has no stack to look at, in the same words in every debugger.

Takes a rank; raises or gives errors with what to do instead.
"""

from __future__ import annotations

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, STARTING, Absent, Rank

GONE = {
    STARTING: ("is still being made", "continue until it runs"),
    EXITED: ("has exited", "its globals are still there: rank print EXPR {rank}"),
    MIGRATED_OUT: ("has migrated to another process", "attach to that one"),
}


def check_is_here(rank: Rank) -> None:
    """Raise `UsageError` for a rank that is not made yet, has ended, or lives elsewhere."""
    if rank.state in GONE:
        what, hint = GONE[rank.state]
        if rank.state == MIGRATED_OUT and rank.moves:
            what = f"has migrated to process {rank.process} of the job"
        if rank.state == STARTING and rank.moves:
            what, hint = "is on its way to this process", "continue until it has arrived"
        raise UsageError(f"rank {rank.rank} {what}", hint.format(rank=rank.rank))


def no_registers_here(rank: Rank) -> UsageError:
    """For a rank whose kernel thread is another process's than the debugger is attached to."""
    what = f"rank {rank.rank} runs in process {rank.address_space}, whose registers are not known here"
    return UsageError(what, f"attach to that one; its globals can be printed: rank print EXPR {rank.rank}")


def no_registers(rank: int, context: Absent) -> UsageError:
    """For a rank whose saved registers can't be had."""
    hint = context.hint or f"its globals can be printed: rank print EXPR {rank}"
    return UsageError(f"rank {rank} has no known registers, {context.reason}", hint)
