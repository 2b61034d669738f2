"""Which frames of a rank's stack are the MPI runtime's own affair, and left out unless the user wants them.

Takes frames, innermost first; gives those to show and how many were folded, or the one that is the program's own. The
call that the program made (`MPI_Recv`) stays, what the runtime does inside it goes. It never touches frames of the
program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Optional, TypeVar

from pieglobalsfind.blocked import MPI_CALL
from pieglobalsfind.call_tree import Call
from pieglobalsfind.facts import dataclass
from pieglobalsfind.model import RankTable
from pieglobalsfind.translate import Translator

if TYPE_CHECKING:
    from pieglobalsfind.command import Moment

Item = TypeVar("Item")


@dataclass(frozen=True)
class Folded(Generic[Item]):
    """What is left to show, and how many frames were before it."""

    count: int
    shown: Iterator[Item]

    @property
    def note(self) -> str:
        """What a backtrace says of it, "" if nothing is folded."""
        frames = "frame" if self.count == 1 else "frames"
        return f"({self.count} {frames} of the runtime folded)" if self.count else ""


def runtime_path(table: RankTable, translator: Translator) -> str:
    """The file that the runtime's code is from, "" if it is unknown."""
    function = table.event_function or table.entry_function
    return translator.owner(function).path.removesuffix(" (deleted)") if function else ""


def fold_calls(path: str, calls: Sequence[Call]) -> Sequence[Call]:
    """Calls, outermost first, without what the runtime in the file `path` does inside the innermost call into it."""
    end = len(calls)
    while end > 0 and path and calls[end - 1].library == path:
        end -= 1
    if end == 0:  # program and runtime are one file: the name alone tells
        end = next((at for at, call in enumerate(calls) if MPI_CALL.fullmatch(call.function)), 0)
    return calls[: end + 1] if end > 0 else calls


def fold(moment: Moment, frames: Iterable[Item], pc_of: Callable[[Item], int]) -> Folded[Item]:
    """Leave out the runtime's frames inside the innermost call that the program made."""
    path = runtime_path(moment.table, moment.translator)
    rest = iter(frames)
    inner: list[Item] = []
    for frame in rest:
        if not path or moment.translator.owner(pc_of(frame)).path != path:
            # A rank that is in no call of the program's is shown as it is.
            return Folded(max(len(inner) - 1, 0), _joined(inner[-1:], frame, rest))
        inner.append(frame)
    return Folded(0, iter(inner))


def user_frame(moment: Moment, rank: int, frames: Iterable[Item], pc_of: Callable[[Item], int]) -> Optional[Item]:
    """The innermost frame in the program's own copy of `rank`; in any of its copies if there is none, else None."""
    nearest: Optional[Item] = None
    for frame in frames:
        owner = moment.translator.owner(pc_of(frame))
        if owner.rank == rank and owner.object is not None:
            if moment.table.objects[owner.object].is_program:
                return frame
            nearest = nearest or frame
    return nearest


def _joined(before: list[Item], frame: Item, rest: Iterator[Item]) -> Iterator[Item]:
    yield from before
    yield frame
    yield from rest
