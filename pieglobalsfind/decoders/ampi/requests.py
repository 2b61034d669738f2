"""What AMPI's ranks wait for, by the requests that AMPI itself keeps: also where no argument of a call is known.

Takes a target and its table; gives for a rank in a call the peer, the tag and the communicator. AMPI posts a request
for each blocking receive, too, and marks those that a call waits for. A request is believed if it is of a class of
requests and has in itself the number by which the rank's list of requests has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Optional

from pieglobalsfind.decoders.ampi.elements import VTABLE, beginning, of_form, placed_elements
from pieglobalsfind.decoders.ampi.runtime_variables import Loader, find_loader
from pieglobalsfind.decoders.ampi.stripped import find_stripped
from pieglobalsfind.decoders.mpi_constants import AMPI
from pieglobalsfind.model import Awaited, Rank, RankTable, Waiting
from pieglobalsfind.target import Target, read_many, read_or_none

PARENT = "_ZTV10ampiParent"  # a rank's own element, which points to its TCharm
RECEIVE, SEND, SYNCHRONOUS_SEND = "_ZTV4IReq", "_ZTV7SendReq", "_ZTV8SsendReq"
CLASSES = (RECEIVE, SEND, SYNCHRONOUS_SEND, "_ZTV7RednReq", "_ZTV9GatherReq", "_ZTV10GathervReq", "_ZTV6ATAReq",
           "_ZTV4GReq", "_ZTV6GPUReq")  # fmt: skip
# AmpiRequest of Charm++ 8 from `tag` on, which is in the order of MPI_Status: tag, source (or destination),
# communicator, its own number, whether it is complete, whether a call waits for it; the destination of an SsendReq
FIELDS_AT = 24
FIELDS = struct.Struct("<4i2?2xi")
REQUEST_SIZE = FIELDS_AT + FIELDS.size
MOST_REQUESTS = 1 << 20  # of a rank
NEED_ONE = ("MPI_Waitany", "MPI_Waitsome")
ANY, NONE = -1, -2  # Waiting.peer and .tag
OF_COLLECTIVE = "source or destination (a collective's request does not name it)"
NOT_ALL = "some sources or destinations (the members of their communicators can't be read)"
SEVERAL = "source or destination (its requests are of several communicators)"
PARENT_SIZE = 0x2000  # bytes that are searched for the table: ampiParent of Charm++ 8 has 4,736
# std::unordered_map of libstdc++: buckets, their number, the first node, the number of nodes
TABLE = struct.Struct("<4Q")
# A node: the next one, the number; ampiCommStruct of Charm++ 8: its number, array, size, kind; two groups
NODE = struct.Struct("<Qi4x3iB3x")
GROUP = struct.Struct("<i4x3Q8x")  # a size, or -1 and a vector of ranks
NODE_SIZE = NODE.size + 2 * GROUP.size
LISTED = -1  # in place of a group's size
MOST_COMMUNICATORS = 1 << 12
MOST_BUCKETS = 1 << 20

Members = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True)
class AmpiRequest:
    """A request: `other` is the source of a message that is received, the destination of one that `is_sent`.

    Numbers are AMPI's; `other` is None for a request of a collective.
    """

    other: Optional[int]
    tag: int
    communicator: int
    is_sent: bool
    is_complete: bool


class AmpiRequests:
    """The requests that the calls of one moment's ranks wait for."""

    def __init__(self, target: Target, table: RankTable) -> None:
        self._target = target
        self._table = table
        self._addresses: dict[int, int] = {}  # of the ranks' ampiParents
        self._lists: list[int] = []  # where their lists of requests lie
        self._communicators: dict[int, Members] = {}  # of ranks that wait in another than MPI_COMM_WORLD

    def waiting(self, rank: Rank, call: str) -> Optional[Waiting]:
        """What a rank waits for that is in a call; None if AMPI has no request for it."""
        requests = self._blocked.get(rank.rank, [])
        left = [request for request in requests if not request.is_complete]
        needs_one = call in NEED_ONE and len(requests) > 1
        if not left or (needs_one and len(left) < len(requests)):
            left = requests[:1]  # the rank only waits for its turn
        if not left:
            return None
        in_world = (self._in_world(rank.rank, request) for request in left)
        numbered = [request for request in in_world if request is not None]
        numbers = {request.communicator for request in left}
        if (needs_one and 0 < len(numbered) < len(left)) or (not numbered and len(numbers) > 1):
            return Waiting(call, unknown=SEVERAL)
        alike = numbered or left
        first, *others = map(_awaited, alike)
        unknown = OF_COLLECTIVE if any(request.other is None for request in alike) else ""
        if numbered and len(numbered) < len(left):
            unknown = NOT_ALL
        is_sent = first.is_sent if first.tag != NONE else None  # of a collective the call tells
        is_in_world, communicator = bool(numbered) and first.peer >= 0, alike[0].communicator
        waiting = Waiting(call, first.peer, first.tag, communicator, is_in_world, unknown, is_sent, tuple(others))
        return replace(waiting, needs_one=needs_one and bool(others))

    def _in_world(self, rank: int, request: AmpiRequest) -> Optional[AmpiRequest]:
        """The request with the other's number in MPI_COMM_WORLD; None if that is not known."""
        if _needs_members(request):
            other, members = request.other or 0, self._members_of(rank).get(request.communicator, ())
            return replace(request, other=members[other]) if other < len(members) else None
        is_own = request.communicator == AMPI.own and request.other is not None and request.other >= 0
        return replace(request, other=rank) if is_own else request

    def _members_of(self, rank: int) -> Members:
        """The members of a rank's communicators."""
        if rank not in self._communicators:
            parent = self._addresses[rank]
            self._communicators[rank] = communicators_of(self._target, parent, self._table.rank_count)
        return self._communicators[rank]

    def read(self) -> tuple[int, ...]:
        """Read all that `waiting` needs; return where the lists of requests lie, as they have others before long.

        If any rank waits in another communicator than MPI_COMM_WORLD, others may at the next moment.
        """
        if any(_needs_members(request) for requests in self._blocked.values() for request in requests):
            for rank in self._addresses:
                self._members_of(rank)
        return tuple(self._lists)

    @cached_property
    def _blocked(self) -> Mapping[int, list[AmpiRequest]]:
        """By rank, the requests that a call of its waits for."""
        maps = self._target.maps()
        loader = find_loader(self._target, maps) or find_stripped(self._target, maps)
        if loader is None:
            return {}
        tables = {name: loader.elf.symbol(name) for name in CLASSES}
        classes = {table + VTABLE.start: name for name, table in tables.items() if table is not None}
        parents = self._parents(loader)
        at = next((at for words in parents.values() for at in self._places(words, classes)), None)
        if at is None:
            return {}
        self._lists = [self._addresses[rank] + 8 * at for rank in parents]
        return {rank: self._requests(words[at : at + 3], classes) or [] for rank, words in parents.items()}

    def _parents(self, loader: Loader) -> dict[int, tuple[int, ...]]:
        """By rank, the words of its ampiParent."""
        ranks = {rank.thread: rank.rank for rank in self._table.ranks if rank.thread}
        owners = {
            address: ranks[word]
            for address, (_, words) in placed_elements(self._target, loader).items()
            for word in words
            if word in ranks
        }
        parents = {}
        for address, (_, words) in placed_elements(self._target, loader, PARENT).items():
            for word in words:
                if word in owners:
                    self._addresses[owners[word]], parents[owners[word]] = address, words
        return parents

    def _places(self, words: Sequence[int], classes: Mapping[int, str]) -> Iterator[int]:
        """Where among the words a list of requests is that has any."""
        return (at for at in range(len(words) - 2) if self._requests(words[at : at + 3], classes))

    def _requests(self, vector: Sequence[int], classes: Mapping[int, str]) -> Optional[list[AmpiRequest]]:
        """The requests in a list that a call waits for; None if it is empty, or not a list of them."""
        if not of_form(vector, MOST_REQUESTS):
            return None
        held = read_or_none(self._target, vector[0], vector[1] - vector[0])
        pointers = struct.unpack(f"<{len(held) // 8}Q", held) if held else ()
        numbered = [(number, pointer) for number, pointer in enumerate(pointers) if pointer]
        contents = read_many(self._target, [(pointer, REQUEST_SIZE) for _, pointer in numbered])
        requests = []
        for (number, _), data in zip(numbered, contents):
            name = classes.get(int.from_bytes((data or b"")[:8], "little"))
            if data is None or name is None:
                return None
            tag, other, communicator, own_number, is_complete, is_blocked, destination = FIELDS.unpack_from(
                data, FIELDS_AT
            )
            if own_number != number:
                return None
            if is_blocked:
                other = destination if name == SYNCHRONOUS_SEND else other
                is_message = name in (RECEIVE, SEND, SYNCHRONOUS_SEND)
                requests.append(
                    AmpiRequest(other if is_message else None, tag, communicator, name != RECEIVE, is_complete)
                )
        return requests if numbered else None


def _needs_members(request: AmpiRequest) -> bool:
    """Whether it names the other by a number of a communicator that the program has made."""
    is_named = request.other is not None and request.other >= 0
    return is_named and request.communicator not in (AMPI.world, AMPI.own)


def _awaited(request: AmpiRequest) -> Awaited:
    if request.other is None:
        return Awaited(NONE, NONE, is_sent=False)
    peer = {AMPI.any_source: ANY, AMPI.no_process: NONE}.get(request.other, request.other)
    # AMPI's collectives send messages with tags above all of the user's
    tag = ANY if request.tag == AMPI.any_tag else NONE if request.tag > AMPI.any_tag else request.tag
    return Awaited(peer, tag, request.is_sent)


def communicators_of(target: Target, parent: int, rank_count: int) -> Members:
    """The members of a rank's communicators by number, without those between two groups; empty without a table."""
    data = _without_others(beginning(target, parent, PARENT_SIZE))
    for at in range(0, len(data) - TABLE.size + 1, 8):
        _, buckets, first, count = TABLE.unpack_from(data, at)
        if 0 < count <= min(MOST_COMMUNICATORS, buckets) and buckets <= MOST_BUCKETS and first and first % 8 == 0:
            members = _members(target, first, count, rank_count)
            if members is not None:
                return members
    return {}


def _without_others(data: bytes) -> bytes:
    """As far as the next object of the same class, which may follow and has a table of its own."""
    ends = (at for at in range(8, len(data), 8) if data[at : at + 8] == data[:8])
    return data[: next(ends, len(data))]


def _members(target: Target, node: int, count: int, rank_count: int) -> Optional[Members]:
    """Those of so many communicators in a chain of nodes; None if it is none."""
    numbers, members_of = set[int](), dict[int, tuple[int, ...]]()
    for _ in range(count):
        data = read_or_none(target, node, NODE_SIZE)
        if data is None:
            return None
        node, key, number, _, size, _ = NODE.unpack_from(data)
        if key != number or not 0 < size <= rank_count:
            return None
        numbers.add(number)
        group, others = (GROUP.unpack_from(data, NODE.size + GROUP.size * at) for at in range(2))
        members = _ranks(target, group, size)
        if others[0] <= 0 and others[1] == others[2] and members is not None and max(members) < rank_count:
            members_of[number] = members
    return members_of if node == 0 and len(numbers) == count and AMPI.world in numbers else None


def _ranks(target: Target, group: tuple[int, ...], size: int) -> Optional[tuple[int, ...]]:
    count, begin, end, _ = group
    if count != LISTED:
        return tuple(range(size)) if count == size else None
    data = read_or_none(target, begin, 4 * size) if end - begin == 4 * size else None
    ranks = struct.unpack(f"<{size}i", data) if data is not None else ()
    return ranks if ranks and min(ranks) >= 0 else None
