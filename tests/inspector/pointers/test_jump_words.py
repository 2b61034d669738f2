"""Which words of glibc's jmp_buf are mangled, by what its assembler names them (sysdeps/*/jmpbuf-offsets.h)."""

from __future__ import annotations

import pytest

from inspector.pointers.ground import MANGLED
from inspector.pointers.object_evidence import ground_by_type, mangled_jump_words
from pieglobalsfind.dwarf.types import Array, Base, Dimension, Member, Struct, TypeTable
from pieglobalsfind.machine.aarch64 import AARCH64
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.x86_64 import X86_64

JB_RBP, JB_RSP, JB_PC = 1, 6, 7
JB_LR, JB_SP = 11, 13


@pytest.mark.parametrize(
    ("processor", "count", "mangled"), [(X86_64, 8, [JB_RBP, JB_RSP, JB_PC]), (AARCH64, 22, [JB_LR, JB_SP])]
)
def test_the_processors_own_words_are_mangled(processor: Processor, count: int, mangled: list[int]) -> None:
    word = Base("unsigned long", 8, "unsigned")
    saved = Struct("struct", "__jmp_buf_tag", 8 * count, (Member("__jmpbuf", 2, 0),))
    types = TypeTable((word, word, Array(1, (Dimension(0, count),), 8 * count), saved))
    words = mangled_jump_words(processor)
    grounds = [ground_by_type(types, 3, 8 * number, "back", "c", words) for number in range(count)]
    assert [number for number, ground in enumerate(grounds) if ground.kind == MANGLED] == mangled
