"""Saved contexts in memory made of bytes: both layouts of fcontext, the guard of jmp_buf, and what must be refused."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping

import pytest

from pieglobalsfind.decoders import saved_context
from pieglobalsfind.decoders.saved_context import AT_RANDOM, MOST_CANDIDATES, pointer_guard, registers
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.x86_64 import X86_64
from tests.support.fabricate.memory import Mapped, MemoryTarget

RSP, PC = X86_64.stack_pointer, X86_64.pc
CODE, HEAP, STACK = 0x400000, 0x10000000, 0x7FFC00000000
CALL = CODE + 0x100  # a call of five bytes ends here
CALL_REGISTER = CODE + 0x200  # and one of two
GUARD = 0xFEDCBA9876543210
VALUES = {12: 1012, 13: 1013, 14: 1014, 15: 1015, 3: 1003, 6: HEAP + 0x800}
ENVIRONMENT = b"HOME=/root\0"


def code() -> bytes:
    found = bytearray(b"\x90" * 0x1000)
    found[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, X86_64.elf_machine, *[0] * 11)
    found[0xFB:0x100] = b"\xe8\0\0\0\0"
    found[0x1FE:0x200] = b"\xff\xd0"
    return bytes(found)


def vector(stack: int, at: int) -> bytes:
    """An auxiliary vector whose random bytes lie at an offset of the stack."""
    pairs = [(33, 0x7FFF00000000), (6, 4096), (17, 100), (25, stack + at), (31, stack + 8), (0, 0)]
    return b"".join(struct.pack("<QQ", *pair) for pair in pairs)


def stack_bytes(size: int, guard: int) -> bytes:
    """The top of a first thread's stack, as the kernel makes it: vector, random bytes, environment."""
    tail = struct.pack("<QQ", 0x1111, guard) + ENVIRONMENT.ljust(32, b"\0")
    begin = size - len(tail)
    found = struct.pack("<QQQ", 1, STACK, 0) + struct.pack("<Q", 0)  # argc, argv, envp
    whole = found + vector(STACK, begin)
    return b"\0" * (begin - len(whole)) + whole + tail


def target(heap: Mapping[int, bytes], name: str = "[stack]", guard: int = GUARD) -> MemoryTarget:
    data = bytearray(0x1000)
    for offset, content in heap.items():
        data[offset : offset + len(content)] = content
    stack = Mapped(STACK, 0x3000, stack_bytes(0x3000, guard), name)
    return MemoryTarget([Mapped(CODE, 0x1000, code(), "/bin/x", "r-x"), Mapped(HEAP, 0x1000, bytes(data)), stack])


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


@pytest.mark.parametrize("before", [1, 2], ids=["plain", "with the stack protector's word"])
@pytest.mark.parametrize("pc", [CALL, CALL_REGISTER])
def test_both_layouts_of_fcontext(before: int, pc: int) -> None:
    saved = words(*[0x1F80] * before, 1012, 1013, 1014, 1015, 1003, HEAP + 0x800, pc)
    found = registers(target({0x40: saved}), "fcontext", HEAP + 0x40)
    assert found == {**VALUES, PC: pc, RSP: HEAP + 0x40 + len(saved)}


def test_the_caller_s_own_return_address_is_not_taken_for_the_context_s() -> None:
    """The word behind a plain context is one, where the caller keeps nothing on its stack."""
    saved = words(0x1F80, 1012, 1013, 1014, 1015, 1003, HEAP + 0x800, CALL, CALL_REGISTER)
    assert registers(target({0: saved}), "fcontext", HEAP)[PC] == CALL


@pytest.mark.parametrize("pc", [CALL, CALL_REGISTER])
def test_a_function_s_address_in_rbp_is_not_taken_for_the_pc(pc: int) -> None:
    """Read as the plain layout, rbp is the pc: only that no call ends before it tells them apart."""
    function = CODE + 0x10
    saved = words(0x1F80, GUARD, 1012, 1013, 1014, 1015, 1003, function, pc)
    found = registers(target({0: saved}), "fcontext", HEAP)
    assert found == {**VALUES, 6: function, PC: pc, RSP: HEAP + len(saved)}


def test_a_new_fcontext_is_no_call_s_return() -> None:
    saved = words(0x1F80, 0, 0, 0, 0, CODE + 0x10, 0, CODE + 0x20)
    assert registers(target({0: saved}), "fcontext", HEAP)[PC] == CODE + 0x20


def mangled(value: int) -> int:
    mixed = value ^ GUARD
    return (mixed << 17 | mixed >> 47) & ((1 << 64) - 1)


JMP_BUF = words(1003, mangled(HEAP + 0x800), 1012, 1013, 1014, 1015, mangled(HEAP + 0x900), mangled(CALL))


@pytest.mark.parametrize("name", ["[stack]", ""], ids=["a process", "a core file, which names no stack"])
def test_a_jmp_buf_needs_no_thread(name: str) -> None:
    found = registers(target({0x80: JMP_BUF}, name), "jmp_buf", HEAP + 0x80)
    assert found == {**VALUES, PC: CALL, RSP: HEAP + 0x900}


def test_decoys_of_a_vector_are_passed_over() -> None:
    """A lone pair that looks like AT_RANDOM's, above the vector and not aligned to it."""
    memory_target = target({})
    stack = memory_target.mapped[-1]
    decoy = words(25, STACK + 0x10)
    stack.data = stack.data[:-16] + decoy
    assert pointer_guard(memory_target, memory_target.maps()) == GUARD


def test_a_stack_full_of_decoys_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_target, looked = target({}), []
    memory_target.mapped[-1].data = words(*[AT_RANDOM] * 0x600)
    monkeypatch.setattr(saved_context, "_is_in_vector", lambda data, at: looked.append(at))
    with pytest.raises(RanklensError, match="the guard that mangles a jmp_buf can't be read"):
        pointer_guard(memory_target, memory_target.maps())
    assert len(looked) == MOST_CANDIDATES < 0x600


@pytest.mark.parametrize("pointer", [0, STACK - 8, STACK + 0x3000 - 8, (1 << 64) - 8])
def test_random_bytes_that_are_elsewhere_are_not_believed(pointer: int) -> None:
    memory_target = target({0: JMP_BUF})
    stack = memory_target.mapped[-1]
    data = bytearray(stack.data)
    at = bytes(data).rindex(words(25)) + 8
    data[at : at + 8] = words(pointer)
    stack.data = bytes(data)
    with pytest.raises(RanklensError, match="the guard that mangles a jmp_buf can't be read"):
        registers(memory_target, "jmp_buf", HEAP)


def test_a_guard_that_is_wrong_gives_no_registers() -> None:
    with pytest.raises(RanklensError, match="is not a jmp_buf of a suspended thread"):
        registers(target({0: JMP_BUF}, guard=GUARD ^ 0x0102030405060708), "jmp_buf", HEAP)


@pytest.mark.parametrize(
    ("pc", "stack", "why"),
    [
        (HEAP, HEAP + 0x100, "is not in executable memory"),
        (0, HEAP + 0x100, "is not in executable memory"),
        (CALL, CODE, "is in no writable memory"),
        (CALL, (1 << 64) - 8, "is in no writable memory"),
        (CALL, HEAP + 0x101, "it is not aligned"),
    ],
)
def test_a_ucontext_that_makes_no_sense(pc: int, stack: int, why: str) -> None:
    saved = bytes(40 + 15 * 8) + words(stack, pc)
    with pytest.raises(RanklensError, match=f"is not a ucontext of a suspended thread.*{why}"):
        registers(target({0: saved}), "ucontext", HEAP)


def test_random_bytes_never_raise_anything_else() -> None:
    chance = random.Random(7)
    for _ in range(300):
        memory_target = target({0: chance.randbytes(0x1000)})
        memory_target.mapped[-1].data = chance.randbytes(0x3000)
        for kind in ("fcontext", "ucontext", "jmp_buf"):
            with pytest.raises(RanklensError):
                registers(memory_target, kind, HEAP + chance.randrange(0x1800))
