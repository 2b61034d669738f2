"""The form of a processor's control table: its breakpoint instruction, debug registers and kernel registers.

Takes nothing. Apart from the processor's table, which debuggers load. Source: ptrace(2), <sys/user.h>.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DebugRegisters:
    """Those that watch data: `slots` hold an address each; `status` and `control` are the numbers of two others.

    `lengths` are the sizes that one can watch. `enabled` gives the bits of `control` for (slot, whether reads count,
    size). The bit of `status` with a slot's number says that it was hit.
    """

    slots: int
    status: int
    control: int
    lengths: tuple[int, ...]
    enabled: Callable[[int, bool, int], int]


@dataclass(frozen=True)
class Control:
    """How threads are controlled on one processor.

    `breakpoint` is the instruction that stops a thread, `past_breakpoint` how far its pc is then from it. `pc_at` and
    `debug_registers_at` are offsets in `struct user`. `kernel_registers` are the DWARF numbers of all that the kernel
    gives in NT_PRSTATUS, in that order (-1: DWARF does not know it). `floating_point` takes the `floating_point_size`
    bytes of NT_PRFPREG.
    """

    breakpoint: bytes
    past_breakpoint: int
    pc_at: int
    debug_registers_at: int
    debug_registers: DebugRegisters
    kernel_registers: tuple[int, ...]
    floating_point_size: int
    floating_point: Callable[[bytes], Mapping[int, int]]
