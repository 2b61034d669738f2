"""AArch64's table, by fabricated targets: saved contexts, calls, and the processor of a target."""

from __future__ import annotations

import struct

import pytest

from pieglobalsfind.decoders.saved_context import pointer_guard, registers
from pieglobalsfind.elf.target_processor import processor_of_target
from pieglobalsfind.errors import RanklensError, TargetError
from pieglobalsfind.machine.aarch64 import AARCH64, FP, LR, PC, SP
from pieglobalsfind.machine.lookup import PROCESSORS, machine_name
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.x86_64 import X86_64
from tests.support.fabricate.memory import Mapped, MemoryTarget

CODE, HEAP, STACK = 0xAAAA00000000, 0xAAAB00000000, 0xFFFF00000000
CALL = CODE + 0x100
GUARD = 0xFEDCBA9876543210
SIGNED = 0x2E << 48  # what pointer authentication leaves in the high bits
SAVED = {number: 1000 + number for number in range(19, 29)}


def code(machine: int) -> bytes:
    found = bytearray(0x1000)
    found[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, machine, *[0] * 11)
    found[0xFC:0x100] = struct.pack("<I", 0x94000010)  # bl
    return bytes(found)


def target(context: bytes = b"", machine: int = AARCH64.elf_machine) -> MemoryTarget:
    """With the top of a first thread's stack as the kernel makes it: the auxiliary vector, then its random bytes."""
    vector = b"".join(struct.pack("<QQ", *pair) for pair in ((6, 65536), (25, STACK + 0x2000), (0, 0)))
    stack = vector.rjust(0x2000, b"\0") + struct.pack("<QQ", 0x1111, GUARD) + bytes(0xFF0)
    heap = Mapped(HEAP, 0x1000, context.ljust(0x1000, b"\0"))
    return MemoryTarget(
        [Mapped(CODE, 0x1000, code(machine), "/bin/x", "r-x"), heap, Mapped(STACK, 0x3000, stack, "[stack]")]
    )


def placed(words: dict[int, int], size: int) -> bytes:
    data = bytearray(size)
    for offset, value in words.items():
        struct.pack_into("<Q", data, offset, value)
    return bytes(data)


@pytest.mark.parametrize("signature", [0, SIGNED])
def test_fcontext(signature: int) -> None:
    words = {0x40 + 8 * (number - 19): value for number, value in SAVED.items()}
    saved = placed({**words, 0x90: HEAP + 0x800, 0x98: CALL, 0xA0: CALL | signature}, 0xB0)
    found = registers(target(saved), "fcontext", HEAP)
    assert found == {**SAVED, FP: HEAP + 0x800, LR: CALL, PC: CALL, SP: HEAP + 0xB0}


def test_ucontext() -> None:
    saved = placed({**{184 + 8 * number: 1000 + number for number in range(31)}, 432: HEAP + 0x900, 440: CALL}, 0x400)
    found = registers(target(saved), "ucontext", HEAP)
    assert found == {**{number: 1000 + number for number in range(31)}, SP: HEAP + 0x900, PC: CALL}


def test_a_jmp_buf_is_mixed_with_the_guard() -> None:
    words = {8 * (number - 19): value for number, value in SAVED.items()}
    saved = placed({**words, 80: HEAP + 0x800, 88: CALL ^ GUARD, 104: (HEAP + 0x900) ^ GUARD}, 0x100)
    memory = target(saved)
    assert pointer_guard(memory, memory.maps()) == GUARD
    assert registers(memory, "jmp_buf", HEAP) == {**SAVED, FP: HEAP + 0x800, PC: CALL, SP: HEAP + 0x900}


def test_a_context_of_the_other_processor_is_refused() -> None:
    words = {0x40 + 8 * (number - 19): value for number, value in SAVED.items()}
    saved = placed({**words, 0xA0: CALL}, 0xB0)
    with pytest.raises(RanklensError):
        registers(target(saved, X86_64.elf_machine), "fcontext", HEAP)


@pytest.mark.parametrize(
    ("word", "expected"),
    [(0x94000010, True), (0xD63F0060, True), (0xD73F0862, True), (0xD65F03C0, False), (0x14000010, False)],
    ids=["bl", "blr x3", "blraa x3, x2", "ret", "b"],
)
def test_calls(word: int, expected: bool) -> None:
    assert AARCH64.is_call(struct.pack("<I", word)) is expected


@pytest.mark.parametrize("table", PROCESSORS.values(), ids=lambda table: table.name)
def test_tables_agree_with_themselves(table: Processor) -> None:
    assert table.mangle(table.demangle(CALL, GUARD), GUARD) == CALL
    assert {table.pc, table.stack_pointer} <= set(table.kernel_registers)
    assert len(table.register_names) > max(table.pc, table.stack_pointer, *table.integer_arguments)
    for layouts in table.contexts.values():
        assert all({table.pc, table.stack_pointer} <= {rule.dwarf_register for rule in one} for one in layouts)


def test_the_target_tells_its_processor() -> None:
    assert processor_of_target(target()) is AARCH64
    assert processor_of_target(target(machine=X86_64.elf_machine)) is X86_64
    with pytest.raises(TargetError):
        processor_of_target(target(machine=8))
    assert machine_name(243) == "RISC-V" and machine_name(9999) == "ELF machine 9999"
