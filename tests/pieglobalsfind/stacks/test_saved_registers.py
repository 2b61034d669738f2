"""Contexts: registers as the layout says, and refusals of what can't be a context."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, RankTable
from pieglobalsfind.stacks.saved_registers import Contexts
from tests.pieglobalsfind.decoders.test_registry import FIRST, RANGE, registry, target_of
from tests.support.fabricate.memory import Mapped, MemoryTarget

CODE = 0x7F0000001000
LAYOUT = ((16, 1, 56), (6, 1, 48), (7, 2, 64))


def made(pc: int = CODE + 8, context: int = FIRST + 0x7000) -> tuple[MemoryTarget, RankTable]:
    """A target whose rank 0 has a context; its stack is mapped with one word of rbp and pc in it."""
    target = target_of(registry().changed(registers=LAYOUT))
    stack = bytearray(0x8000)
    place = context - FIRST - 0x1000
    if 0 <= place <= 0x8000 - 64:
        struct.pack_into("<QQ", stack, place + 48, 0xBB, pc)
    target.mapped.append(Mapped(FIRST + 0x1000, 0x8000, bytes(stack)))
    target.mapped.append(Mapped(CODE, 0x1000, b"", "/home/me/solver", "r-x"))
    table = decode(target)
    first = replace(table.ranks[0], context=context)
    return target, replace(table, ranks=(first, *table.ranks[1:]))


def test_registers_by_the_layout() -> None:
    target, table = made()
    assert Contexts(target, table).registers(table.ranks[0]) == {16: CODE + 8, 6: 0xBB, 7: FIRST + 0x7040}


@pytest.mark.parametrize(
    ("pc", "context", "sentence"),
    [
        (CODE + 8, FIRST + 0x7004, "not aligned"),
        (CODE + 8, FIRST + RANGE + 0x7000, "no readable context"),
        (CODE + 0x1000, FIRST + 0x7000, "not in executable memory"),
        (FIRST + 0x1000, FIRST + 0x7000, "not in executable memory"),
        (CODE + 8, FIRST + 0x8FC8, "no readable context"),
    ],
)
def test_refused(pc: int, context: int, sentence: str) -> None:
    target, table = made(pc, context)
    with pytest.raises(RanklensError, match=sentence):
        Contexts(target, table).registers(table.ranks[0])


def test_outside_the_stack() -> None:
    target, table = made()
    target.mapped.append(Mapped(0x5000000000, 0x1000, b"\0" * 56 + struct.pack("<Q", CODE)))
    moved = replace(table.ranks[0], context=0x5000000000)
    with pytest.raises(RanklensError, match="outside the rank's stack"):
        Contexts(target, table).registers(moved)


def test_an_empty_stack() -> None:
    """The stack pointer may be the stack's very end."""
    target, table = made(context=FIRST + 0x8FC0)
    assert Contexts(target, table).registers(table.ranks[0])[7] == FIRST + 0x9000


def test_no_context() -> None:
    target, table = made()
    with pytest.raises(RanklensError, match="rank 0 is running"):
        Contexts(target, table).registers(replace(table.ranks[0], state="running"))
    with pytest.raises(RanklensError, match="no saved registers, it has ended"):
        Contexts(target, table).registers(replace(table.ranks[0], context=Absent("it has ended")))
    with pytest.raises(RanklensError, match="where rank 0 saves its registers is unknown"):
        Contexts(target, replace(table, context_layout=())).registers(table.ranks[0])
    with pytest.raises(RanklensError, match="no stack pointer or no pc"):
        Contexts(target, replace(table, context_layout=table.context_layout[:1])).registers(table.ranks[0])


def test_many_ranks_read_the_map_once() -> None:
    target, table = made()
    asked = 0
    maps = target.maps

    def counting() -> object:
        nonlocal asked
        asked += 1
        return maps()

    target.maps = counting  # type: ignore[method-assign,assignment]
    contexts = Contexts(target, table)
    for _ in range(100):
        contexts.registers(table.ranks[0])
    assert asked == 1
