"""Make up the control block and the vector by which GDB and LLDB find a rank's thread-local variables.

GDB 17 and newer, and LLDB, don't ask the server where a thread-local variable is. They read what glibc has for a
thread: the register fs_base leads to its control block, this to a vector of the addresses of its blocks by the number
of a module (glibc's sysdeps/x86_64/nptl/tls.h). A rank's blocks may stand elsewhere, so the server makes up control
block and vector; the blocks that they lead to are the rank's.

LLDB reads a module's number in its `struct link_map`, and the program's one from `struct r_debug` (<link.h>), both of
which are made up as well. GDB counts the libraries that have thread-local variables as they come and go, as `Modules`
does (GDB 17's solib-svr4.c, `tls_maybe_fill_slot`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Nothing that can be read is from here on: x86-64 accepts no such address (of its vsyscall page no byte can be read),
# and AArch64's are the kernel's. There debuggers take the upper bytes of all others for a signature.
ELSEWHERE = 0xFFFF << 48
END = 1 << 64
PAGE = 4096
ENTRY = 16  # bytes of `dtv_t`
MOST_MODULES = PAGE // ENTRY - 1
VECTOR = ELSEWHERE + PAGE
LOADER_LIST, POINTER_TO_LIST = ELSEWHERE + 256, ELSEWHERE + 512
LIST_SIZE = 40  # of `struct r_debug`
FIRST_LINK = slice(8, 16)  # r_map
PUBLIC_LINK = 40  # bytes of `struct link_map` that <link.h> declares; the number's place is glibc's own affair


def identity_of(base: int) -> int:
    """Where the `struct link_map` of the object at `base` is made up: it names the object to debuggers."""
    return ELSEWHERE | base


class Modules:
    """Which number a debugger that counts gives to each module; has to learn every list of libraries that it reads."""

    def __init__(self) -> None:
        self._slots: list[int] = []

    def learn(self, identities: Sequence[int]) -> None:
        """Take the modules that have thread-local variables, the program first."""
        self._slots = [slot if slot in identities else 0 for slot in self._slots]
        for identity in identities:
            if identity in self._slots:
                continue
            if 0 in self._slots:
                self._slots[self._slots.index(0)] = identity
            else:
                self._slots.append(identity)

    @property
    def numbers(self) -> Mapping[int, int]:
        """By identity, up to the first free slot: a debugger that reads its list anew closes that gap."""
        certain = self._slots[: self._slots.index(0)] if 0 in self._slots else self._slots
        return {identity: number for number, identity in enumerate(certain[:MOST_MODULES], 1)}


@dataclass(frozen=True)
class MadeUpMemory:
    """What debuggers read from `ELSEWHERE` on. All names of modules are identities.

    `program` is the rank's program, `blocks` are where the rank's blocks begin, `numbers` those of modules, `loader` is
    the process's `struct r_debug`, or empty.
    """

    program: int
    blocks: Mapping[int, int]
    numbers: Mapping[int, int]
    loader: bytes

    def read(self, address: int, size: int) -> bytes:
        """As many of the bytes as there are in one page, b"" if that is not made up."""
        page, start = address & -PAGE, address % PAGE
        if page == ELSEWHERE:
            content = self._control_block()
        elif page == VECTOR:
            blocks = (self.blocks.get(identity, 0) for identity in (0, *self.numbers))
            content = b"".join(struct.pack("<QQ", block, 0) for block in blocks)
        elif page in self.numbers:
            content = bytes(PUBLIC_LINK) + struct.pack("<I", self.numbers[page]) * ((PAGE - PUBLIC_LINK) // 4)
        else:
            return b""
        return content.ljust(PAGE, b"\0")[start : start + size]

    def _control_block(self) -> bytes:
        block = struct.pack("<QQQ", ELSEWHERE, VECTOR, ELSEWHERE)
        if len(self.loader) == LIST_SIZE:
            own_list = bytearray(self.loader)
            own_list[FIRST_LINK] = struct.pack("<Q", self.program)
            block = block.ljust(LOADER_LIST - ELSEWHERE, b"\0") + bytes(own_list)
            block = block.ljust(POINTER_TO_LIST - ELSEWHERE, b"\0") + struct.pack("<Q", LOADER_LIST)
        return block
