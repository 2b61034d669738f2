"""Where suspended ranks have saved their registers, by the words in which a runtime names such places."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from pieglobalsfind.decoders.scanned_stacks import with_stacks
from pieglobalsfind.machine.x86_64 import R12, RBP, RBX, RIP, RSP
from pieglobalsfind.model import RankTable
from tests.pieglobalsfind.decoders.test_scanned_stacks import CALL, CODE, COPIES, RETURN, STACKS, UNKNOWN, place, table
from tests.support.fabricate.memory import Mapped, MemoryTarget

RUNTIME, WORDS = 0x40000, 0x70000
SWITCH, OTHER = 0x100, 0x200  # where functions of the runtime begin
# push %rbp, %rbx, %r12; sub $8, %rsp; mov %rsp, (%rdi)
PUSHES = bytes.fromhex("55 53 4154 4883ec08 488927")
NO_STORE = bytes.fromhex("55 53 4154 4883ec08 488b07")
AT = 0x800  # of a context in its stack


def code_of_runtime() -> bytes:
    """A call of each function at 0x800 and 0x900, and the functions."""
    code = bytearray(b"\x90" * 0x1000)
    code[SWITCH : SWITCH + len(PUSHES)] = PUSHES
    code[OTHER : OTHER + len(NO_STORE)] = NO_STORE
    for at, called in ((0x800, SWITCH), (0x900, OTHER)):
        code[at - 5 : at] = b"\xe8" + struct.pack("<i", called - at)
    return bytes(code)


def saved(returns_to: int, rank: int) -> bytes:
    """Control words, %r12, %rbx, %rbp, the return address; a context of rank 0; a return into the rank's own code."""
    return struct.pack("<7Q", 0, 12, 3, 6, returns_to, STACKS[0] + AT, place(rank))


def scanned(words: Sequence[int], returns_to: int = RUNTIME + 0x800) -> RankTable:
    """Two suspended ranks, and what the runtime's memory holds."""
    code = CALL.rjust(RETURN, b"\x90").ljust(0x1000, b"\x90")
    mapped = [Mapped(copy + CODE, 0x1000, code, protection="r-x") for copy in COPIES]
    mapped.append(Mapped(RUNTIME, 0x1000, code_of_runtime(), protection="r-x"))
    for rank, stack in enumerate(STACKS):
        mapped.append(Mapped(stack, 0x1000, bytes(AT) + saved(returns_to, rank)))
    mapped.append(Mapped(WORDS, 0x1000, struct.pack(f"<{len(words)}Q", *words)))
    target = MemoryTarget(mapped, False, ())
    return with_stacks(target, table(), target.maps())


def test_the_runtime_names_each_context() -> None:
    found = scanned([7, STACKS[1] + AT, STACKS[0] + AT])
    assert [(rank.context, rank.context_at) for rank in found.ranks] == [
        (STACKS[0] + AT, WORDS + 16),
        (STACKS[1] + AT, WORDS + 8),
    ]
    places = {rule.dwarf_register: (rule.saved, rule.offset) for rule in found.context_layout}
    saved_at = {R12: 8, RBX: 16, RBP: 24, RIP: 32}
    assert places == {RSP: (False, 40), **{register: (True, offset) for register, offset in saved_at.items()}}


@pytest.mark.parametrize(
    ("words", "returns_to"),
    [
        ((), RUNTIME + 0x800),  # rank 1's stack alone names it
        ((STACKS[0] + AT + 8,), RUNTIME + 0x800),  # what lies there does not return to after such a call
        ((STACKS[0] + AT,), RUNTIME + 0x900),  # the function called does not store its stack pointer
        ((STACKS[0] + AT,), RUNTIME + 0x700),  # no call
        ((STACKS[0] + AT + 1,), RUNTIME + 0x800),  # not aligned
    ],
)
def test_what_tells_of_no_context(words: Sequence[int], returns_to: int) -> None:
    found = scanned(words, returns_to)
    assert [rank.context for rank in found.ranks] == [UNKNOWN, UNKNOWN] and found.context_layout == ()
