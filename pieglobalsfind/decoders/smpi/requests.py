"""What SMPI's ranks wait for, by the requests that their blocked calls keep on their stacks.

Takes a target and its table; gives for a rank in a call the peer, the tag and the communicator, and of communicators
their members. A request is believed if it is the rank's own and its members are where C++ puts them: data type, size,
source, destination, tag, one after the other, and the communicator after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Optional

from pieglobalsfind.decoders.smpi.actors import Actor, find_actors
from pieglobalsfind.decoders.smpi.contexts import writable
from pieglobalsfind.decoders.smpi.library import SimgridLibrary, Words, find_library, words_of
from pieglobalsfind.decoders.smpi.numbering import identities, number
from pieglobalsfind.model import Awaited, Rank, RankTable, Rebase, Region, Waiting
from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import Target, read_or_none

SMPI = "N7simgrid4smpi"
REQUEST, COMMUNICATOR, GROUP = (f"{SMPI}{name}E" for name in ("7Request", "4Comm", "5Group"))
ACTIVITY = "N7simgrid6kernel8activity"
ANY_SOURCE, ANY_TAG = -555, -444  # smpi.h; tags of collectives are negative, too
ANY, NONE = -1, -2  # Waiting.peer and .tag
OBJECT_WORDS = 40
ACTIVITY_WORDS = 64
FEWEST_WORDS = 8
ARRAY_WORDS = 16  # of an array of requests
INSIDE = 1 << 14  # bytes of a stack that SMPI's own calls use
MOST_MEMBERS = 1 << 20
NO_REQUEST = "source or destination (no request of it is found on its stack)"
UNREAD = "source or destination (whether the other side has come can't be read)"
PROBES = ("MPI_Probe", "MPI_Mprobe")  # whose requests never begin
HAS_ENDED = "source or destination (that rank has ended)"
NEED_ONE = ("MPI_Waitany", "MPI_Waitsome")


@dataclass(frozen=True)
class SmpiRequest:
    """A request: the actors' numbers (-555: any), the tag, the communicator's address.

    `is_matched`: both sides are there, or it is done; None if that can't be read. `has_begun`: it has a communication.
    """

    source: int
    destination: int
    tag: int
    communicator: int
    is_matched: Optional[bool]
    has_begun: bool


class Requests:
    """The requests of one moment."""

    def __init__(self, target: Target, table: RankTable) -> None:
        self._target = target
        self._table = table
        maps = target.maps()
        self._writable = writable(maps)
        self._library: Optional[SimgridLibrary] = find_library(target, maps)
        actors = (find_actors(target, self._library) if self._library is not None else None) or []
        numbers = number(actors, identities(target, actors))
        self._ranks = {actors[index].number: rank for rank, index in numbers.actors.items()}
        self._actors: Mapping[int, Actor] = {rank: actors[index] for rank, index in numbers.actors.items()}
        self._addresses = {actor.address for actor in actors}
        self._classes: dict[int, str] = {}

    def waiting(self, rank: Rank, pointer: int, call: str) -> tuple[Waiting, bool]:
        """What a rank waits for that is in a call, with its stack from `pointer` on; and whether that is on its way."""
        smpi_requests = self._requests(rank, pointer)
        if call not in PROBES:
            smpi_requests = [request for request in smpi_requests if request.has_begun]
        if not smpi_requests:
            return Waiting(call, unknown=NO_REQUEST), False
        own = self._actors[rank.rank].number
        ordered = sorted(smpi_requests, key=lambda request: self._urgency(request, own))
        first, needs_one = ordered[0], call in NEED_ONE and len(ordered) > 1
        if any(request.is_matched is None for request in ordered):
            return Waiting(call, communicator=first.communicator, unknown=UNREAD), False
        left = [request for request in ordered if not request.is_matched]
        if not left or (needs_one and len(left) < len(ordered)):
            return self._waiting(rank, call, first, ()), True
        return replace(self._waiting(rank, call, first, left[1:]), needs_one=needs_one), False

    def members(self, communicators: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """The ranks of communicators, by their addresses; only of those that are known, and whose ranks all live."""
        ranks_of = {
            communicator: tuple(self._members_of(communicator))
            for communicator in communicators
            if self._class_of(communicator) == COMMUNICATOR
        }
        return {address: ranks for address, ranks in ranks_of.items() if ranks and -1 not in ranks}

    def _urgency(self, smpi_request: SmpiRequest, own: int) -> tuple[bool, bool, bool]:
        """Of several that a call waits for, those come first that surely wait for another rank to do its part.

        A small message is sent without waiting for its receiver.
        """
        return (
            smpi_request.is_matched is not False,
            smpi_request.destination != own,
            not {smpi_request.source, smpi_request.destination} <= self._ranks.keys(),
        )

    def _members_of(self, communicator: int) -> Iterator[int]:
        """The ranks in a communicator, in its order, -1 for an ended one; a group has a std::vector of actors.

        If a communicator has all ranks, and each living rank is at the place of its number, so were the ended ones.
        """
        (words,) = words_of(self._target, [communicator], OBJECT_WORDS, FEWEST_WORDS)
        group = next((word for word in words[1:] if self._class_of(word) == GROUP), 0)
        (words,) = words_of(self._target, [group], OBJECT_WORDS, FEWEST_WORDS)
        for begin, end, most in zip(words[1:], words[2:], words[3:]):
            if 0 < begin < end <= most and (end - begin) % 8 == 0 and end - begin <= 8 * MOST_MEMBERS:
                data = read_or_none(self._target, begin, end - begin)
                if data is not None:
                    ranks = [self._ranks.get(process, -1) for process in memoryview(data).cast("q")]
                    is_world = len(ranks) == self._table.rank_count
                    in_order = all(rank in (at, -1) for at, rank in enumerate(ranks))
                    return iter(range(len(ranks)) if is_world and in_order else ranks)
        return iter(())

    def _waiting(self, rank: Rank, call: str, smpi_request: SmpiRequest, others: Sequence[SmpiRequest]) -> Waiting:
        own = self._actors[rank.rank].number
        first, *rest = (self._awaited(own, request) for request in (smpi_request, *others))
        unknown = "" if NONE not in [awaited.peer for awaited in (first, *rest)] else HAS_ENDED
        is_sent = first.is_sent if first.tag != NONE else None  # of a collective the call tells
        return Waiting(
            call, first.peer, first.tag, smpi_request.communicator, first.peer >= 0, unknown, is_sent, tuple(rest)
        )

    def _awaited(self, own: int, smpi_request: SmpiRequest) -> Awaited:
        is_sent = smpi_request.destination != own
        other = smpi_request.destination if is_sent else smpi_request.source
        peer = ANY if other == ANY_SOURCE else self._ranks.get(other, NONE)
        tag = ANY if smpi_request.tag == ANY_TAG else smpi_request.tag if smpi_request.tag >= 0 else NONE
        return Awaited(peer, tag, is_sent)

    def _requests(self, rank: Rank, pointer: int) -> list[SmpiRequest]:
        """Those of the innermost call that has any; between calls stand return addresses into the program."""
        actor = self._actors.get(rank.rank)
        if actor is None or not isinstance(rank.stack, Region) or pointer not in rank.stack:
            return []
        size = min(INSIDE, rank.stack.end - pointer) & -8
        data = read_or_none(self._target, pointer, size)
        if not self._stands_still(pointer, data or b""):
            return []
        words = memoryview(data or b"").cast("Q")
        for part in _calls(words, _code(self._table, rank)):
            smpi_requests = self._in_part(actor, [word for word in dict.fromkeys(part) if self._is_writable(word)])
            if smpi_requests:
                return smpi_requests
        return []

    def _is_writable(self, word: int) -> bool:
        """Whether a word may be the address of an object."""
        return word % 8 == 0 and range_at(self._writable, word) is not None

    def _stands_still(self, pointer: int, data: bytes) -> bool:
        """Whether the rank has not run since its stack was copied, where requests are read from the running process."""
        live: Optional[Target] = getattr(self._target, "live", None)
        if live is None or not getattr(self._target, "rest_is_live", False):
            return True
        return read_or_none(live, pointer, len(data)) == data

    def _in_part(self, actor: Actor, words: Sequence[int]) -> list[SmpiRequest]:
        """Requests that words lead to, or arrays of requests."""
        objects = words_of(self._target, words, ARRAY_WORDS, 1)
        direct = [word for word, held in zip(words, objects) if self._is(held, REQUEST)]
        arrays = [held for held in objects if held and self._class_of(held[0]) == REQUEST]
        listed = [word for held in arrays for word in takewhile(self._may_be_listed, held) if word]
        return self._believed(actor, [*listed, *direct])

    def _may_be_listed(self, word: int) -> bool:
        """Whether a word can be an element of an array of requests: one that is done is null."""
        return not word or self._class_of(word) == REQUEST

    def _is(self, words: Words, name: str) -> bool:
        return bool(words) and self._library is not None and self._library.class_of(words[0]) == name

    def _class_of(self, address: int) -> str:
        if address % 8 or not address or self._library is None:
            return ""
        if address not in self._classes:
            (words,) = words_of(self._target, [address], 1, 1)
            self._classes[address] = self._library.class_of(words[0]) if words else ""
        return self._classes[address]

    def _believed(self, actor: Actor, addresses: Sequence[int]) -> list[SmpiRequest]:
        """Requests that are the actor's own, once each, those that are still to be done."""
        requests = []
        for words in words_of(self._target, list(dict.fromkeys(addresses)), OBJECT_WORDS, FEWEST_WORDS):
            smpi_request = self._request(actor, words)
            if smpi_request is not None:
                requests.append(smpi_request)
        return requests

    def _request(self, actor: Actor, words: Words) -> Optional[SmpiRequest]:
        at = next((at for at in range(1, len(words) - 12) if self._is_type(words[at])), None)
        if at is None:
            return None
        source, destination = _signed(words[at + 2], 64), _signed(words[at + 3], 64)
        place = next((at for at in range(at + 5, len(words) - 2) if self._class_of(words[at]) == COMMUNICATOR), None)
        if place is None or actor.number not in (source, destination):
            return None
        activity, flags = words[place + 1 : place + 3]
        if source == actor.number and flags >> 32 & 0xFF == 1:  # detached: no rank waits for its receiver
            return None
        matched = self._is_matched(activity, actor, source == actor.number) if activity else False
        return SmpiRequest(source, destination, _signed(words[at + 4], 32), words[place], matched, bool(activity))

    def _is_type(self, address: int) -> bool:
        name = self._class_of(address)
        return name.startswith(SMPI) and ("Datatype" in name or "Type_" in name)

    def _is_matched(self, activity: int, own: Actor, sends: bool) -> Optional[bool]:
        """Whether the other side has come, too, or none is there any more: the rank goes on by itself then.

        A communication has its sender's actor, and then its receiver's; null for one that has not come.
        """
        (words,) = words_of(self._target, [activity], ACTIVITY_WORDS, FEWEST_WORDS)
        if not words or not self._class_of(activity).startswith(ACTIVITY):
            return None
        for sender, receiver in zip(words, words[1:]):
            near, far = (sender, receiver) if sends else (receiver, sender)
            if near == own.address and (far == 0 or far in self._addresses):
                return far != 0
        return True


def _calls(words: Sequence[int], code: Sequence[tuple[int, int]]) -> Iterator[Sequence[int]]:
    """Parts of a stack, innermost first, that end with words that lie in the program's code."""
    start = 0
    least, most = min((part[0] for part in code), default=0), max((part[1] for part in code), default=0)
    for at, word in enumerate(words):
        if least <= word < most and any(low <= word < high for low, high in code):
            yield words[start:at]
            start = at + 1
    yield words[start:]


def _code(table: RankTable, rank: Rank) -> list[tuple[int, int]]:
    """Where the code of the rank's copy of the program is, or of the program that all have."""
    copies = {placement.object: placement.copy for placement in rank.placements if isinstance(placement, Rebase)}
    ranges = []
    for elf_object in table.objects:
        if elf_object.is_program:
            base = copies.get(elf_object.index, elf_object.base)
            ranges += [(base + part.offset, base + part.end) for part in elf_object.segments if part.executable]
    return ranges


def _signed(word: int, bits: int) -> int:
    value = word & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value
