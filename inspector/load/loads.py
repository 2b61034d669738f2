"""What is known of a job's load: times of ranks and processing elements, and messages between ranks.

The values alone, their differences over a time, and their form in JSON. All times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Optional, TypeVar, Union

from pieglobalsfind.model import Absent

from .sampling_error import worst_error

SCHEMA = "ranklens-load-1"
COUNTED, THREADS, SAMPLED = "counted", "threads", "sampled"
CLEARED = "the runtime has cleared its counts in this period, as it does when it balances: what was before is lacking"

Seconds = Union[float, Absent]
Number = TypeVar("Number", int, float)
Place = tuple[int, int]
"""A processing element: the process's index, and the element's in it."""


@dataclass(frozen=True)
class RankLoad:
    """`busy`: how long it had its processing element; `processor`: of that, how long the kernel gave it a processor.

    `switches`: how often it was switched to.
    """

    rank: int
    place: Place
    busy: Seconds
    processor: Seconds
    switches: Union[int, Absent]


@dataclass(frozen=True)
class ElementLoad:
    """`idle`: without a rank to run; `undivided`: ranks took turns, and nothing tells which of them had how much.

    `processor` is the processor time of its kernel thread.
    """

    place: Place
    kernel_thread: int
    elapsed: Seconds
    idle: Seconds
    undivided: Seconds
    processor: Seconds


@dataclass(frozen=True)
class Traffic:
    """Messages from one rank to another and the bytes of their data; those of collective calls apart."""

    messages: int = 0
    bytes: int = 0
    collective_messages: int = 0
    collective_bytes: int = 0

    def plus(self, other: Traffic) -> Traffic:
        """Return the sums."""
        return Traffic(
            self.messages + other.messages,
            self.bytes + other.bytes,
            self.collective_messages + other.collective_messages,
            self.collective_bytes + other.collective_bytes,
        )

    def minus(self, other: Traffic) -> Traffic:
        """Return the differences."""
        return Traffic(
            self.messages - other.messages,
            self.bytes - other.bytes,
            self.collective_messages - other.collective_messages,
            self.collective_bytes - other.collective_bytes,
        )

    @property
    def all_messages(self) -> int:
        """Return the messages of both kinds."""
        return self.messages + self.collective_messages

    @property
    def all_bytes(self) -> int:
        """Return the bytes of both kinds."""
        return self.bytes + self.collective_bytes


Matrix = Mapping[tuple[int, int], Traffic]
"""By sender and receiver."""


@dataclass(frozen=True)
class Loads:
    """A job's load over `seconds`; `how` says where the figures come from, `notes` what is lacking in them.

    `looks`: how many there were, where the load was sampled; 0 where it was counted.
    """

    source: str
    how: str
    seconds: float
    ranks: tuple[RankLoad, ...]
    elements: tuple[ElementLoad, ...]
    traffic: Union[Matrix, Absent]
    notes: tuple[str, ...] = field(default=())
    looks: int = 0


def sent_by(traffic: Matrix) -> dict[int, Traffic]:
    """By sender, all that it sent."""
    return _by_end(traffic, 0)


def received_by(traffic: Matrix) -> dict[int, Traffic]:
    """By receiver, all that was sent to it."""
    return _by_end(traffic, 1)


def _by_end(traffic: Matrix, end: int) -> dict[int, Traffic]:
    traffic_of: dict[int, Traffic] = {}
    for pair, each in traffic.items():
        traffic_of[pair[end]] = traffic_of.get(pair[end], Traffic()).plus(each)
    return traffic_of


# ---- over a time ----


def between(before: Loads, after: Loads, seconds: float) -> Loads:
    """What has been added from one reading to a later one; what only one of them has counts from 0.

    AMPI's balancers clear what they have counted: then only what came afterwards is known.
    """
    if sum(measured(rank.busy for rank in after.ranks)) < sum(measured(rank.busy for rank in before.ranks)) / 2:
        return replace(after, seconds=seconds, notes=(*after.notes, CLEARED))
    earlier = {rank.rank: rank for rank in before.ranks}
    elements = {element.place: element for element in before.elements}
    traffic = after.traffic
    if not isinstance(traffic, Absent) and not isinstance(before.traffic, Absent):
        old = before.traffic
        changes = {pair: each.minus(old.get(pair, Traffic())) for pair, each in traffic.items()}
        traffic = {pair: each for pair, each in changes.items() if each != Traffic()}
    return replace(
        after,
        seconds=seconds,
        ranks=tuple(_rank_since(earlier.get(rank.rank), rank) for rank in after.ranks),
        elements=tuple(_element_since(elements.get(element.place), element) for element in after.elements),
        traffic=traffic,
    )


def _rank_since(before: Optional[RankLoad], after: RankLoad) -> RankLoad:
    if before is None:
        return after
    return replace(
        after,
        busy=_less(after.busy, before.busy),
        processor=_less(after.processor, before.processor),
        switches=_less(after.switches, before.switches),
    )


def _element_since(before: Optional[ElementLoad], after: ElementLoad) -> ElementLoad:
    if before is None:
        return after
    return replace(
        after,
        elapsed=_less(after.elapsed, before.elapsed),
        idle=_less(after.idle, before.idle),
        undivided=_less(after.undivided, before.undivided),
        processor=_less(after.processor, before.processor),
    )


def _less(after: Union[Number, Absent], before: Union[Number, Absent]) -> Union[Number, Absent]:
    """An open time is an estimate, so that a difference may be a little below 0."""
    if isinstance(after, Absent) or isinstance(before, Absent):
        return after if isinstance(after, Absent) else before
    return max(after - before, type(after)(0))


# ---- sums ----


def measured(values: Iterable[Seconds]) -> list[float]:
    """Those that are known."""
    return [value for value in values if not isinstance(value, Absent)]


# ---- JSON ----


def as_json(loads: Loads) -> dict[str, object]:
    """The fields of `schemas/load.json` about load; what is unknown is null."""
    return {
        "source": loads.source,
        "how": loads.how,
        "seconds": round(loads.seconds, 6),
        "ranks": [
            {
                "rank": rank.rank,
                "process": rank.place[0],
                "element": rank.place[1],
                "busy": _json_number(rank.busy),
                "processor": _json_number(rank.processor),
                "switches": _json_number(rank.switches),
            }
            for rank in loads.ranks
        ],
        "elements": [
            {
                "process": element.place[0],
                "element": element.place[1],
                "kernel_thread": element.kernel_thread,
                "elapsed": _json_number(element.elapsed),
                "idle": _json_number(element.idle),
                "undivided": _json_number(element.undivided),
                "processor": _json_number(element.processor),
            }
            for element in loads.elements
        ],
        "traffic": None if isinstance(loads.traffic, Absent) else [_pair(*pair) for pair in _in_order(loads.traffic)],
        "notes": list(loads.notes),
        "error": round(worst_error(loads.looks), 6),
    }


def _json_number(value: Union[int, float, Absent]) -> Union[int, float, None]:
    return None if isinstance(value, Absent) else round(value, 6)


def _in_order(traffic: Matrix) -> list[tuple[tuple[int, int], Traffic]]:
    return sorted(traffic.items(), key=lambda pair: pair[0])


def _pair(ends: tuple[int, int], traffic: Traffic) -> dict[str, int]:
    return {
        "from": ends[0],
        "to": ends[1],
        "messages": traffic.messages,
        "bytes": traffic.bytes,
        "collective_messages": traffic.collective_messages,
        "collective_bytes": traffic.collective_bytes,
    }
