"""The form of a processor's table: everything about registers, calls, relocations and saved contexts that differs.

Takes nothing. A table is chosen by the ELF machine of what is read, never by the machine that reads: a core file of
another processor is read like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

WORD = 8
# Where no processor has anything: not canonical on x86-64, and too high on AArch64, which ignores the first byte.
NOWHERE = 1 << 63 | 1 << 54


@dataclass(frozen=True)
class RegisterRule:
    """Where a context keeps a register: its value is at context+offset (`saved`), or is context+offset."""

    dwarf_register: int
    saved: bool
    offset: int


Layout = tuple[RegisterRule, ...]
Registers = dict[int, int]  # values by DWARF number


def saved_at(places: Mapping[int, int]) -> Layout:
    """The layout of a context that keeps registers (by DWARF number) at offsets."""
    return tuple(RegisterRule(number, True, offset) for number, offset in places.items())


@dataclass(frozen=True)
class Relocations:
    """The types of relocations, by number, that store an address or say where thread-local variables are."""

    absolute: int
    glob_dat: int
    jump_slot: int
    relative: int
    tls_module: int
    tls_offset: int  # of a variable in its module's block
    tls_distance: int  # of a variable from the thread pointer
    names: Mapping[int, str]  # of those that store an address


@dataclass(frozen=True)
class SignalFrame:
    """What the kernel pushes before it calls a signal's handler, which returns to `code`.

    The rest are distances from the stack pointer there: of the ucontext_t, its signal mask and its fault's address, and
    of the siginfo_t, which is written for handlers with SA_SIGINFO alone.
    """

    code: bytes
    context: int
    mask: int
    fault_address: int
    information: int


@dataclass(frozen=True)
class Processor:
    """One processor under Linux with glibc. Registers are DWARF numbers.

    `kernel_name` is uname's word. `register_names` are GDB's and LLDB's, by number. `kernel_registers` are the numbers
    of NT_PRSTATUS's words in their order (-1: the word has none), `process_registers` GDB's names of what all threads
    of a process have alike. `return_address` is the column of unwind tables that holds it: the pc itself where calls
    push it, the link register where they don't (`pushes_return_address`). `tls_is_above`: blocks of static TLS lie
    above the thread pointer (variant I). `contexts` are the layouts of each kind of saved context
    (`decoders/saved_context.py`), the last one of a kind Charm++'s own; `charm_context` is the kind by which Charm++
    switches threads. `mangled` are the registers that a jmp_buf holds mangled: `demangle` and `mangle` take a word and
    the guard. `self_at` is where a thread's control block has its own address a second time, None where it has none.
    `signal_frame` is None where that is not known. `switch_layout` takes what reads memory and a return address; after
    a call of a function that switches stacks, it gives what that has pushed. `is_call` says whether `longest_call`
    bytes end in an instruction that may be a call. `resumed` takes what reads memory and saved registers; it gives
    those after the last instructions of libc's own function that saved them, where these are still to come.
    `page_sizes`: what kernels may be built with. `watched_places`: how many words debuggers can watch at a time.
    `code_mask`: the bits of a saved return address that are its address. `is_decoded`: `inspector/program` decodes its
    instructions. `beyond_it` says what an address past `end_of_user_space` is.
    """

    elf_machine: int
    name: str
    kernel_name: str
    gdb_name: str
    register_names: tuple[str, ...]
    stack_pointer: int
    pc: int
    frame_pointer: int
    return_address: int
    pushes_return_address: bool
    call_preserved: tuple[int, ...]
    integer_arguments: tuple[int, ...]
    kernel_registers: tuple[int, ...]
    process_registers: tuple[str, ...]
    tls_is_above: bool
    self_at: Optional[int]
    relocations: Relocations
    contexts: Mapping[str, tuple[Layout, ...]]
    raw_contexts: tuple[Layout, ...]
    charm_context: str
    mangled: tuple[int, ...]
    demangle: Callable[[int, int], int]
    mangle: Callable[[int, int], int]
    signal_frame: Optional[SignalFrame]
    switch_layout: Callable[[Callable[[int, int], bytes], int], Optional[Layout]]
    resumed: Callable[[Callable[[int, int], bytes], Registers], Registers]
    longest_call: int
    is_call: Callable[[bytes], bool]
    page_sizes: tuple[int, ...]
    watched_places: int
    code_mask: int
    is_decoded: bool
    end_of_user_space: int
    beyond_it: str

    def static_tls_start(self, pointer: int, size: int) -> int:
        """Where `size` bytes of static TLS begin that belong to a thread pointer."""
        return pointer if self.tls_is_above else pointer - size

    @property
    def stack_pointer_name(self) -> str:
        """Return the stack pointer's name."""
        return self.register_names[self.stack_pointer]

    @property
    def pc_name(self) -> str:
        """Return the pc's name."""
        return self.register_names[self.pc]

    @cached_property
    def kept_registers(self) -> Mapping[str, int]:
        """Return what every frame has, by the debuggers' names: call-preserved registers, pc and stack pointer."""
        roles = {"pc": self.pc, "sp": self.stack_pointer, "fp": self.frame_pointer}
        own = (*self.call_preserved, self.pc, self.stack_pointer)
        return {**{self.register_names[number]: number for number in own}, **roles}

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Return the names of the registers that hold integer arguments."""
        return tuple(self.register_names[number] for number in self.integer_arguments)
