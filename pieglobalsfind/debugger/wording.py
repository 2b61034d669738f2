"""The words for ranks, addresses and frames, the same in every command.

Takes values of the model; gives text. It reads nothing and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pieglobalsfind.model import EXITED, RUNNING, UNKNOWN_ELEMENT, Absent, Object, Owner, Rank, Waiting
from pieglobalsfind.ranks.translate import IN_USE, UNUSED
from pieglobalsfind.stacks.frame import CALLED_BY_DEBUGGER, SIGNAL_HANDLER

if TYPE_CHECKING:
    from pieglobalsfind.session.process_view import ProcessView
    from pieglobalsfind.stacks.frame import Frame

ORIGINAL_IN_USE = (
    "privatization failed: ranks use the original's functions and variables with external linkage, one for all; "
    "`rank print --nominal` reads their own"
)
INDENT = "        "
NO_TAG = -2  # Waiting.tag
MOST_MESSAGES = 3  # that are named of one call
SENDS = frozenset({"MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"})


def waiting_text(waiting: Waiting) -> str:
    """`MPI_Recv from 3, tag 7`, `MPI_Waitall to 4, tag 0 and from 3, tag 7`; of MPI_COMM_WORLD, unless it says more.

    Of a collective the call alone: which rank is needed next in it differs from rank to rank.
    """
    if waiting.tag == NO_TAG and not waiting.unknown:
        return waiting.call
    is_sent = waiting.call in SENDS if waiting.is_sent is None else waiting.is_sent
    communicator = f"communicator {waiting.communicator}" if waiting.communicator else "its communicator"
    number = f"{waiting.peer}" if waiting.in_world else f"{waiting.peer} of {communicator}"
    first = _message(waiting.peer, waiting.tag, is_sent, number)
    shown = [first, *(_message(other.peer, other.tag, other.is_sent, f"{other.peer}") for other in waiting.others)]
    more = len(shown) - MOST_MESSAGES
    if more > 0:
        shown[MOST_MESSAGES:] = [f" {more} more"]
    return waiting.call + (" or" if waiting.needs_one else " and").join(shown)


def _message(peer: int, tag: int, is_sent: bool, number: str) -> str:
    way = "to" if is_sent else "from"
    peer_text = {-1: f" {way} any rank", -2: ""}.get(peer, f" {way} {number}")
    return peer_text + {-1: ", any tag", -2: ""}.get(tag, f", tag {tag}")


def state_word(rank: Rank) -> str:
    """`blocked`, or `exited (7)` with the status if that is known; `actor, ready` of what is no MPI rank."""
    state = f"actor, {rank.state}" if rank.is_actor else rank.state
    return f"{state} ({rank.exit_status})" if rank.state == EXITED and rank.exit_status is not None else state


def noun(ranks: Sequence[Rank]) -> str:
    """What several ranks are called."""
    return "actors" if ranks and ranks[0].is_actor else "ranks"


def state_text(rank: Rank) -> str:
    """`blocked in MPI_Recv from 3, tag 7`, `running on thread 4711`."""
    if rank.state == RUNNING and rank.kernel_thread:
        return f"{state_word(rank)} on thread {rank.kernel_thread}"
    return f"{rank.state} in {waiting_text(rank.waiting)}" if rank.waiting else state_word(rank)


def needs_running(command: str, rank: Rank, breaking: str) -> str:
    """Why a command that makes a rank go on is refused; `breaking` is the debugger's command for a breakpoint in it."""
    return (
        f"`{command}` needs a rank that runs, and rank {rank.rank} is {state_text(rank)}: set a breakpoint where "
        f"it goes on, as by `{breaking} LOCATION {rank.rank}`, and `continue`"
    )


def element_text(rank: Rank) -> str:
    """`2`, or `-` where any element of the process may run the rank next."""
    return "-" if rank.processing_element == UNKNOWN_ELEMENT else str(rank.processing_element)


def file_name(elf_object: Object) -> str:
    """Return the file's name without its folder."""
    return elf_object.path.rpartition("/")[2]


def frame_text(frame: Frame) -> str:
    """`#3  0x... in solve (n=4) at solver.c:81`, and below it the locals if there are any."""
    if frame.function in (SIGNAL_HANDLER, CALLED_BY_DEBUGGER):
        return f"#{frame.level:<2} {frame.function}"
    pc = f"{frame.pc:#018x} in " if frame.shows_pc else ""
    place = f" at {frame.file}:{frame.line}" if frame.file else f" from {frame.library}" if frame.library else ""
    line = f"#{frame.level:<2} {pc}{frame.function or '??'} ({frame.arguments}){place}"
    return "\n".join([line, *(INDENT + line for line in frame.variables.splitlines())])


def owner_text(moment: ProcessView, owner: Owner) -> str:
    """Whose an address is: `rank 3: data counter+4 (prog+0x4010), solver.c:12`."""
    return "".join(_owner_parts(moment, owner))


def _owner_parts(moment: ProcessView, owner: Owner) -> Iterator[str]:
    if owner.kind == "unmapped":
        yield f"no owner: {owner.reason or 'it is not mapped'}"
        return
    yield f"rank {owner.rank}: {owner.kind}" if owner.rank is not None else _nobodys(owner)
    symbol = moment.symbolizer.symbol(owner)
    if not isinstance(symbol, Absent):
        yield f" {symbol.name}" + (f"+{symbol.offset}" if symbol.offset else "")
    if owner.object is not None:
        yield f" ({file_name(moment.table.objects[owner.object])}+{owner.offset:#x})"
    if not isinstance(symbol, Absent) and symbol.file:
        yield f", {symbol.file}:{symbol.line}"
    if owner.object is not None and owner.rank is not None:
        yield f", original {owner.original:#x}"
    if owner.object is not None and owner.reason in (IN_USE, UNUSED):
        yield f" ({owner.reason})"


def _nobodys(owner: Owner) -> str:
    if owner.kind == "shared":
        return "one for all ranks:"
    if owner.kind == "original":
        return "the unprivatized original, no rank's:"
    return "the runtime, no rank's:" if owner.kind == "runtime" else f"no rank's: {owner.kind}"
