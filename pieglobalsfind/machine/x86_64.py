"""x86-64: DWARF numbers and calls by the psABI (figures 3.36 and 3.4), layouts by glibc's and Boost's sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.processor import WORD, Layout, Processor, RegisterRule, Relocations, SignalFrame, saved_at

EM_X86_64 = 62
RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP = range(8)
R8, R9, R10, R11, R12, R13, R14, R15, RIP = range(8, 17)
EFLAGS = 49
_NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip")
_MASK = (1 << 64) - 1

# struct user_regs_struct (sys/user.h): what the kernel writes to NT_PRSTATUS, as far as it has DWARF numbers
_KERNEL = (R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, -1, RIP, -1, EFLAGS, RSP)

# psABI, tables 4.9 and 4.10
_RELOCATIONS = Relocations(
    absolute=1,
    glob_dat=6,
    jump_slot=7,
    relative=8,
    tls_module=16,
    tls_offset=17,
    tls_distance=18,
    names={
        1: "R_X86_64_64",
        6: "R_X86_64_GLOB_DAT",
        7: "R_X86_64_JUMP_SLOT",
        8: "R_X86_64_RELATIVE",
        37: "R_X86_64_IRELATIVE",
    },
)


def pushed(first: int, numbers: tuple[int, ...]) -> Layout:
    """Words on the stack from `first` on, the return address last: the stack pointer is what follows them."""
    saved = tuple(RegisterRule(number, True, first + WORD * at) for at, number in enumerate(numbers))
    return (*saved, RegisterRule(RSP, False, first + WORD * len(numbers)))


# Boost.Context's jump_fcontext (System V): the control words of SSE and x87 come first, then, depending on how it was
# built, the stack protector's word.
_FCONTEXT = (R12, R13, R14, R15, RBX, RBP, RIP)
FCONTEXT, FCONTEXT_WITH_GUARD = pushed(0x08, _FCONTEXT), pushed(0x10, _FCONTEXT)
# push %r: of the first eight registers one byte, of the others two (Intel's manual, volume 2)
_PUSHED = {bytes([0x50 + at]): number for at, number in enumerate((RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI))}
_PUSHED.update({bytes([0x41, 0x50 + at]): R8 + at for at in range(8)})
_ENDBR, _SUBTRACT, _CALL = bytes.fromhex("f30f1efa"), bytes.fromhex("4883ec"), 0xE8  # sub $N, %rsp; call
_STORE, _LONGEST_SWITCH = bytes.fromhex("488927"), 64  # mov %rsp, (%rdi)


def switch_layout(read: Callable[[int, int], bytes], pc: int) -> Optional[Layout]:
    """What a function that switches stacks has pushed, if it was called just before `pc`."""
    try:
        call = read(pc - 5, 5)
        called = pc + int.from_bytes(call[1:], "little", signed=True) & _MASK
        code = read(called, _LONGEST_SWITCH) if call[0] == _CALL else b""
    except MemoryUnreadable:
        return None
    at, numbers, below = len(_ENDBR) if code.startswith(_ENDBR) else 0, [RIP], 0
    while True:
        length = 2 if code[at : at + 1] == b"\x41" else 1
        number = _PUSHED.get(code[at : at + length])
        if number is None:
            break
        numbers.insert(0, number)
        at += length
    if code[at : at + 3] == _SUBTRACT:
        below = code[at + 3]
    is_switch = len(numbers) > 1 and below < 0x80 and _STORE in code[at:]
    return pushed(below, tuple(numbers)) if is_switch else None


# gregs of mcontext_t (sys/ucontext.h), which begins after uc_flags, uc_link and uc_stack
_GREGS = (R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP)
UCONTEXT = saved_at({number: 40 + WORD * at for at, number in enumerate(_GREGS)})
# glibc, sysdeps/x86_64/jmpbuf-offsets.h
JMP_BUF = saved_at({RBX: 0, RBP: 8, R12: 16, R13: 24, R14: 32, R15: 40, RSP: 48, RIP: 56})
# SimGrid's raw_swapcontext (ContextRaw.cpp) pushes these
_RAW = pushed(0, (R15, R14, R13, R12, RBX, RBP, R9, R8, RCX, RDX, RSI, RDI, RIP))


# struct rt_sigframe (arch/x86/include/asm/sigframe.h) after the return address: a ucontext, whose last register is cr2,
# then the siginfo
_SIGNAL_FRAME = SignalFrame(
    code=bytes.fromhex("48c7c00f0000000f05"),  # mov $SYS_rt_sigreturn, %rax; syscall
    context=0,
    mask=40 + 256,
    fault_address=40 + 22 * WORD,
    information=40 + 256 + WORD,
)


def _demangle(value: int, guard: int) -> int:
    """Undo PTR_MANGLE: rotated by 17 bits and mixed with the guard (sysdeps/unix/sysv/linux/x86_64/sysdep.h)."""
    return (value >> 17 | value << 47) & _MASK ^ guard


def _mangle(address: int, guard: int) -> int:
    """Do as PTR_MANGLE."""
    mixed = address ^ guard
    return (mixed << 17 | mixed >> 47) & _MASK


def _is_call(before: bytes) -> bool:
    """Intel SDM 2A, CALL: E8, or FF /2."""
    return before[2] == 0xE8 or any(before[at] == 0xFF and before[at + 1] >> 3 & 7 == 2 for at in (0, 1, 3, 4, 5))


X86_64 = Processor(
    elf_machine=EM_X86_64,
    name="x86-64",
    kernel_name="x86_64",
    gdb_name="i386:x86-64",
    register_names=_NAMES,
    stack_pointer=RSP,
    pc=RIP,
    frame_pointer=RBP,
    return_address=RIP,
    pushes_return_address=True,
    call_preserved=(RBX, RBP, R12, R13, R14, R15),
    integer_arguments=(RDI, RSI, RDX, RCX, R8, R9),
    kernel_registers=_KERNEL,
    process_registers=(),
    tls_is_above=False,
    self_at=16,  # tcbhead_t is {tcb, dtv, self, ...}
    relocations=_RELOCATIONS,
    contexts={"fcontext": (FCONTEXT, FCONTEXT_WITH_GUARD), "ucontext": (UCONTEXT,), "jmp_buf": (JMP_BUF,)},
    raw_contexts=(_RAW,),
    charm_context="fcontext",  # conv-mach.h of netlrts-linux-x86_64
    mangled=(RBP, RSP, RIP),
    demangle=_demangle,
    mangle=_mangle,
    signal_frame=_SIGNAL_FRAME,
    switch_layout=switch_layout,
    resumed=lambda read, registers: registers,
    longest_call=7,
    is_call=_is_call,
    page_sizes=(4096,),
    watched_places=4,
    code_mask=_MASK,
    is_decoded=True,
    end_of_user_space=1 << 47,
    beyond_it="not canonical",
)
