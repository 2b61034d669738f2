"""AArch64: DWARF numbers by "DWARF for the Arm 64-bit Architecture" (table 1), calls by AAPCS64, layouts by glibc."""

from __future__ import annotations

import struct
from collections.abc import Callable

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.processor import WORD, Processor, RegisterRule, Registers, Relocations, saved_at

EM_AARCH64 = 183
FP, LR, SP, PC = 29, 30, 31, 32
_NAMES = (*(f"x{number}" for number in range(31)), "sp", "pc")

# ELF for the Arm 64-bit Architecture, "Relocation types"
_RELOCATIONS = Relocations(
    absolute=257,
    glob_dat=1025,
    jump_slot=1026,
    relative=1027,
    tls_module=1028,
    tls_offset=1029,
    tls_distance=1030,
    names={
        257: "R_AARCH64_ABS64",
        1025: "R_AARCH64_GLOB_DAT",
        1026: "R_AARCH64_JUMP_SLOT",
        1027: "R_AARCH64_RELATIVE",
        1032: "R_AARCH64_IRELATIVE",
    },
)

# Boost.Context's jump_fcontext (AAPCS): d8 to d15, x19 to x30, then the pc; 0xb0 bytes
_FCONTEXT = (
    *saved_at({number: 0x40 + WORD * (number - 19) for number in range(19, 31)}),
    RegisterRule(PC, True, 0xA0),
    RegisterRule(SP, False, 0xB0),
)
# mcontext_t (sys/ucontext.h) begins at byte 176 with the fault's address
_UCONTEXT = saved_at({number: 184 + WORD * number for number in range(33)})
# glibc, sysdeps/aarch64/jmpbuf-offsets.h; the pc is the link register
_JMP_BUF = saved_at({**{number: WORD * (number - 19) for number in range(19, 30)}, PC: 88, SP: 104})


# Pointer authentication signs with the bits above (48-bit user addresses).
_CODE_MASK = (1 << 48) - 1
# The last instructions of glibc's swapcontext (sysdeps/unix/sysv/linux/aarch64/swapcontext.S)
_NOP, _MOVE_LR, _RETURN = 0xD503201F, 0xAA0103FE, 0xD65F03C0  # nop; mov x30, x1; ret


def _resumed(read: Callable[[int, int], bytes], registers: Registers) -> Registers:
    """After swapcontext's end, which it saves as pc and link register: its caller's address is in x1."""
    pc = registers.get(PC)
    if pc is None or registers.get(LR) != pc or 1 not in registers:
        return registers
    try:
        code = struct.unpack("<3I", read(pc, 12))
    except MemoryUnreadable:
        return registers
    if (code[1:] if code[0] == _NOP else code[:2]) != (_MOVE_LR, _RETURN):
        return registers
    caller = registers[1] & _CODE_MASK
    return {**registers, PC: caller, LR: caller}


def _mix(value: int, guard: int) -> int:
    """Do or undo PTR_MANGLE (sysdeps/unix/sysv/linux/aarch64/sysdep.h)."""
    return value ^ guard


def _is_call(before: bytes) -> bool:
    """Arm ARM, C6.2: BL, BLR, and BLRAA and its like, which authenticate."""
    word = int.from_bytes(before, "little")
    return word >> 26 == 0b100101 or word & 0xFFFFFC1F == 0xD63F0000 or word & 0xFEFFF800 == 0xD63F0800


AARCH64 = Processor(
    elf_machine=EM_AARCH64,
    name="AArch64",
    kernel_name="aarch64",
    gdb_name="aarch64",
    register_names=_NAMES,
    stack_pointer=SP,
    pc=PC,
    frame_pointer=FP,
    return_address=LR,
    pushes_return_address=False,
    call_preserved=tuple(range(19, 30)),
    integer_arguments=tuple(range(8)),
    kernel_registers=tuple(range(33)),
    process_registers=("pauth_dmask", "pauth_cmask"),  # which bits of a return address are its signature
    tls_is_above=True,
    self_at=None,
    relocations=_RELOCATIONS,
    contexts={"fcontext": (_FCONTEXT,), "ucontext": (_UCONTEXT,), "jmp_buf": (_JMP_BUF,)},
    raw_contexts=(),
    charm_context="ucontext",  # conv-mach.h of netlrts-linux-arm8
    mangled=(SP, PC),
    demangle=_mix,
    mangle=_mix,
    signal_frame=None,
    switch_layout=lambda read, pc: None,
    resumed=_resumed,
    longest_call=4,
    is_call=_is_call,
    page_sizes=(4096, 16384, 65536),
    watched_places=4,  # the architecture permits 2 to 16; Cortex and Neoverse have 4
    code_mask=_CODE_MASK,
    is_decoded=False,
    end_of_user_space=1 << 48,
    beyond_it="above 48 bits",
)
