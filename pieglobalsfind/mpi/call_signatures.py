"""Read an MPI call's peer, tag and communicator from its arguments, where the runtime publishes no calls.

Takes a rank's stack and the frame of its outermost MPI call; gives the call with peer, tag and communicator, or with
the reason why one of them is not known. What numbers mean is the runtime's convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders.mpi_constants import Convention
from pieglobalsfind.model import Absent, Waiting
from pieglobalsfind.stacks.frame_arguments import RankStack, Where, plain

ANY, NONE = -1, -2  # Waiting.peer and .tag
INVERSE = 1 << 64


@dataclass(frozen=True)
class CallSignature:
    """How many parameters a call has in C, and at which place which one is; Fortran's calls have one more."""

    count: int
    communicator: int
    peer: Optional[int] = None
    tag: Optional[int] = None
    root: Optional[int] = None


SEND, PROBE = CallSignature(6, 5, 3, 4), CallSignature(4, 2, 0, 1)
SHAPES = {
    "MPI_Recv": CallSignature(7, 5, 3, 4),
    "MPI_Send": SEND,
    "MPI_Ssend": SEND,
    "MPI_Bsend": SEND,
    "MPI_Rsend": SEND,
    "MPI_Probe": PROBE,
    "MPI_Sendrecv": CallSignature(12, 10, 8, 9),
    "MPI_Sendrecv_replace": CallSignature(9, 7, 5, 6),
    "MPI_Barrier": CallSignature(1, 0),
    "MPI_Bcast": CallSignature(5, 4, root=3),
    "MPI_Gather": CallSignature(8, 7),
    "MPI_Gatherv": CallSignature(9, 8),
    "MPI_Scatter": CallSignature(8, 7, root=6),
    "MPI_Scatterv": CallSignature(9, 8, root=7),
    "MPI_Allgather": CallSignature(7, 6),
    "MPI_Allgatherv": CallSignature(8, 7),
    "MPI_Alltoall": CallSignature(7, 6),
    "MPI_Alltoallv": CallSignature(9, 8),
    "MPI_Alltoallw": CallSignature(9, 8),
    "MPI_Reduce": CallSignature(7, 6),
    "MPI_Allreduce": CallSignature(6, 5),
    "MPI_Reduce_scatter": CallSignature(6, 5),
    "MPI_Reduce_scatter_block": CallSignature(6, 5),
    "MPI_Scan": CallSignature(6, 5),
    "MPI_Exscan": CallSignature(6, 5),
    "MPI_Comm_dup": CallSignature(2, 0),
    "MPI_Comm_split": CallSignature(4, 0),
    "MPI_Comm_create": CallSignature(3, 0),
}
IN_REQUESTS = "source or destination (they are in the runtime's requests, not in its arguments)"
NO_SHAPE = "its communicator (which of its arguments that is, is not known here)"
OF_WORLD = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")


class MpiCall:
    """One rank's MPI call: its arguments by their places, from the C function's frame or from Fortran's around it."""

    def __init__(self, stack: RankStack, frame: int, name: str) -> None:
        self._stack, self._frame, self._name = stack, frame, name
        self._shape = SHAPES[name]

    def integer(self, place: int) -> Union[int, Absent]:
        """An `int` argument, or why it is not known."""
        value: Union[int, Absent] = Absent("its function is inlined")
        if plain(self._stack.functions(self._frame)[-1]) == plain(self._name):
            value = self._stack.integer(Where(self._frame, place, self._shape.count))
        outer = self._frame + 1
        if isinstance(value, Absent) and outer < len(self._stack) and self._is_fortran(outer):
            by_reference = self._stack.pointed_at(Where(outer, place, self._shape.count + 1))
            return value if isinstance(by_reference, Absent) else by_reference
        return value

    def _is_fortran(self, frame: int) -> bool:
        return plain(self._stack.functions(frame)[-1]) == f"{self._name.lower()}_"


def waiting(stack: RankStack, frame: int, name: str, rank: int, convention: Convention) -> Waiting:
    """What a rank waits for that is in the call `name` at a frame of its stack."""
    if name in OF_WORLD:
        return Waiting(name, communicator=convention.world)
    shape = SHAPES.get(name)
    if shape is None:
        return Waiting(name, unknown=IN_REQUESTS if name.startswith("MPI_Wait") else NO_SHAPE)
    call = MpiCall(stack, frame, name)
    wanted = {
        "communicator": shape.communicator,
        "source or destination": shape.peer,
        "tag": shape.tag,
        "root": shape.root,
    }
    values = {title: call.integer(place) for title, place in wanted.items() if place is not None}
    unknown = _reasons({title: value for title, value in values.items() if isinstance(value, Absent)})
    integers = {title: value for title, value in values.items() if isinstance(value, int)}
    communicator = integers.get("communicator")
    peer = _peer(integers.get("source or destination"), convention) if shape.peer is not None else NONE
    numbers_ranks = convention.numbers_ranks
    if numbers_ranks and communicator == convention.world and integers.get("root", rank) != rank:
        peer = integers["root"]  # in any implementation: what the others get is his
    if numbers_ranks and communicator == convention.own and peer is not None and peer >= 0:
        peer = rank
    return Waiting(
        name,
        NONE if peer is None else peer,
        _tag(integers.get("tag"), convention),
        0 if communicator is None else communicator % INVERSE,
        numbers_ranks and peer is not None and peer >= 0 and communicator in (convention.world, convention.own),
        unknown,
    )


def _reasons(unknown: dict[str, Absent]) -> str:
    """`communicator, tag (its function has no debug information, ...)`: those that lack for one reason together."""
    titles: dict[str, list[str]] = {}
    for title, why in unknown.items():
        titles.setdefault(why.reason, []).append(title)
    return "; ".join(f"{', '.join(titles_alike)} ({reason})" for reason, titles_alike in titles.items())


def _peer(number: Optional[int], convention: Convention) -> Optional[int]:
    if number is None:
        return None
    return {convention.any_source: ANY, convention.no_process: NONE}.get(number, number if number >= 0 else None)


def _tag(number: Optional[int], convention: Convention) -> int:
    if number is None:
        return NONE
    return ANY if number == convention.any_tag else number
