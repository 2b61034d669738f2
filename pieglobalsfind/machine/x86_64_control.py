"""Control of x86-64's threads. Sources: <sys/user.h>; Intel's manual, volume 1, "Layout of the 64-bit-mode FXSAVE64
Map", volume 2, INT3, volume 3, "Debug Registers"; x86-64 psABI, figure 3.36.
"""

from __future__ import annotations

from pieglobalsfind.machine.control import Control, DebugRegisters

# In the order of `struct user_regs_struct`; -1: the number of a system call.
_KERNEL = (
    15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, 51, 49, 7, 52, 58, 59, 53, 50, 54, 55,
)  # fmt: skip
_XMM, _ST, _MXCSR, _CONTROL_WORD, _STATUS_WORD = 17, 33, 64, 65, 66
_XMM_AT, _ST_AT, _MXCSR_AT, _CONTROL_WORD_AT, _STATUS_WORD_AT = 160, 32, 24, 0, 2
_SLOT, _ST_SIZE = 16, 10  # bytes
_WRITE, _ACCESS = 1, 3  # of DR7's field R/W
_LENGTHS = {1: 0, 2: 1, 4: 3, 8: 2}  # of DR7's field LEN


def _floating_point(state: bytes) -> dict[int, int]:
    """The x87 and SSE registers as the instruction fxsave has them."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(state[at : at + size], "little")

    registers = {_XMM + index: number(_XMM_AT + _SLOT * index, _SLOT) for index in range(16)}
    registers.update({_ST + index: number(_ST_AT + _SLOT * index, _ST_SIZE) for index in range(8)})
    registers.update({_MXCSR: number(_MXCSR_AT, 4), _CONTROL_WORD: number(_CONTROL_WORD_AT, 2)})
    registers[_STATUS_WORD] = number(_STATUS_WORD_AT, 2)
    return registers


def _enabled(slot: int, is_access: bool, size: int) -> int:
    """DR7's bits."""
    return 1 << 2 * slot | ((_ACCESS if is_access else _WRITE) | _LENGTHS[size] << 2) << 16 + 4 * slot


X86_64_CONTROL = Control(
    breakpoint=b"\xcc",  # int3
    past_breakpoint=1,
    pc_at=16 * 8,
    debug_registers_at=848,
    debug_registers=DebugRegisters(slots=4, status=6, control=7, lengths=tuple(_LENGTHS), enabled=_enabled),
    kernel_registers=_KERNEL,
    floating_point_size=512,
    floating_point=_floating_point,
)
