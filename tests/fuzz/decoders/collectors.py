"""Collectors' messages: a damaged one is refused, whatever it holds and wherever the damage is."""

from __future__ import annotations

from inspector.analysis import stack_groups
from inspector.collect.event_stream import HostRound
from inspector.collect.host_reading import CollectedPart
from inspector.collect.mpi_stacks import StackFindings
from inspector.collect.sealed_message import DamagedMessageError, opened, sealed
from pieglobalsfind.dwarf.types import VOID, TypeTable, Variables, Void
from pieglobalsfind.stacks.call_tree import Call
from tests.fuzz.patches import damaged, written

GROUPS = stack_groups.grouped({0: (Call("main"), Call("work")), 1: (Call("main"),)}).message()
VALUES: tuple[object, ...] = (
    {0: "first", 1: "second"},
    (frozenset((b"\x11" * 20,)), 1),
    {b"\x11" * 20: Variables((), TypeTable({VOID: Void()}), ()), b"\x22" * 20: None},
    CollectedPart(StackFindings(frozenset((0,)), ("a problem",), calls=GROUPS), 2, "job 7", ((2, 3),)),
    HostRound("first", notices=()),
)
MESSAGES = [sealed(value) for value in VALUES]


def seeds() -> list[bytes]:
    """The first byte says which message is damaged, or (255) that the input is a message itself."""
    places = range(0, max(map(len, MESSAGES)), 40)
    kinds = [bytes([number]) for number in range(len(MESSAGES))]
    return [
        *kinds,
        *(kind + written([(place, b"\x7f")]) for kind in kinds for place in places),
        *(b"\xff" + message for message in MESSAGES),
    ]


def check(data: bytes) -> None:
    if data[:1] == b"\xff":
        message, value = data[1:], None
        is_sound = message in MESSAGES
    else:
        number = (data[0] if data else 0) % len(MESSAGES)
        message, wrong = damaged(MESSAGES[number], data[1:])
        value, is_sound = VALUES[number], not wrong
    try:
        told = opened(message, object)
    except DamagedMessageError:
        assert not is_sound
        return
    assert is_sound and (value is None or told == value)
