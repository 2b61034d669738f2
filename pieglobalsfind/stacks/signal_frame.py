"""The frame that the kernel pushes for a signal's handler: what the signal was, and the registers at that moment.

Takes what a stack holds where a handler will return to; gives the signal and the interrupted frame's registers. Unwind
tables describe this frame by expressions; the kernel's layout of it never changes (rt_sigreturn(2)).
"""

from __future__ import annotations

import signal
import struct
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.stacks.stack_memory import Memory

ADDRESS = 16  # siginfo_t of a 64-bit Linux: si_signo, si_errno, si_code, and si_addr
# Those by which a program ends by its own fault; a debugger's or the user's (SIGTRAP, SIGQUIT) are none of them
FATAL = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS)
FAULTS = (signal.SIGSEGV, signal.SIGBUS)  # those with an address
SI_KERNEL = 0x80  # si_code of a fault whose address the processor does not tell (sigaction(2))
SENT = 0  # si_code of a signal that is no fault


@dataclass(frozen=True)
class HandledSignal:
    """`code` is si_code, or 1 of a fault whose handler got none; `address` means something for faults alone."""

    number: int
    code: int = SENT
    address: int = 0


def is_signal_return(processor: Processor, memory: Memory, pc: int) -> bool:
    """Whether a handler that the kernel called returns to `pc`: glibc's code there is always the same."""
    frame = processor.signal_frame
    try:
        return frame is not None and memory.read(pc, len(frame.code)) == frame.code
    except MemoryUnreadable:
        return False


def interrupted(processor: Processor, memory: Memory, stack_pointer: int) -> dict[int, int]:
    """The registers of the frame that the signal interrupted; raises `MemoryUnreadable`."""
    assert processor.signal_frame is not None
    context = stack_pointer + processor.signal_frame.context
    (layout,) = processor.contexts["ucontext"]
    return {rule.dwarf_register: memory.word(context + rule.offset) for rule in layout}


def mask_before(processor: Processor, memory: Memory, stack_pointer: int) -> int:
    """The signals that were blocked when the signal came, a bit each; raises `MemoryUnreadable`."""
    assert processor.signal_frame is not None
    return memory.word(stack_pointer + processor.signal_frame.mask)


def fatal_signal(processor: Processor, memory: Memory, stack_pointer: int, blocked: int) -> Optional[HandledSignal]:
    """Which of `FATAL` a handler got, None for another signal, and where that is unknown.

    `blocked` are the signals that are blocked in the handler (0: unknown): the kernel blocks the one that it is called
    for, unless the program wants otherwise (sigaction(2), SA_NODEFER). Raises `MemoryUnreadable`.
    """
    frame = processor.signal_frame
    assert frame is not None
    came = blocked & ~mask_before(processor, memory, stack_pointer)
    possible = [number for number in FATAL if came >> (number - 1) & 1] or list(FATAL)
    fault = memory.word(stack_pointer + frame.fault_address)
    data = memory.read(stack_pointer + frame.information, ADDRESS + 8)
    number, _, code = struct.unpack_from("<iii", data)
    (address,) = struct.unpack_from("<Q", data, ADDRESS)
    is_fault = number in FAULTS and code > 0
    if number in possible and (not is_fault or code == SI_KERNEL or address == fault):
        return HandledSignal(number, code, address)
    if len(possible) != 1:
        return None
    return HandledSignal(possible[0], 1 if possible[0] in FAULTS and fault else SENT, fault)
