"""Where a rank has a variable: the first of its placements that covers it, and what its code really uses.

Takes a rank table and places in the original; gives addresses, or why there are none. The nominal place follows from
the placements; the effective one is what the rank's own GOT says. Where they differ, that is the diagnosis.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Union

from pieglobalsfind.elf import DT_STRTAB, DT_SYMTAB, EM_AARCH64, EM_X86_64, SYMBOL_SIZE, ElfFile
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Absent, Object, Rank, RankTable, Rebase, Redirect, TlsBlock
from pieglobalsfind.object_file import identity_of, object_path
from pieglobalsfind.target import Target

GLOB_DAT = {EM_X86_64: (6,), EM_AARCH64: (1025,)}  # x86-64 psABI, table 4.10; ELF for the Arm 64-bit Architecture
_NO_COPY = Absent("the rank has no copy of it")


@dataclass(frozen=True)
class Slot:
    """A GOT word that names a variable: both are vaddrs of the object's file."""

    vaddr: int
    variable: int


def address(rank: Rank, found: Object, vaddr: int) -> Union[int, Absent]:
    """The nominal address of what the file of `found` has at `vaddr`."""
    original = vaddr + found.load_bias
    for one in rank.placements:
        if isinstance(one, Redirect) and one.object == found.index and 0 <= original - one.original < max(one.size, 1):
            return one.storage + original - one.original
        if isinstance(one, Rebase) and one.object == found.index and 0 <= original - one.original < one.size:
            return one.copy + original - one.original
    return _NO_COPY


def thread_local_address(rank: Rank, found: Object, offset: int) -> Union[int, Absent]:
    """The address of what lies at `offset` in the object's TLS block (variant II, ELF Handling For TLS, 3.4.6)."""
    for one in rank.placements:
        if isinstance(one, TlsBlock) and one.object in (None, found.index):
            if not one.is_thread_pointer:
                return one.address + offset
            if found.tls_offset:
                return one.address - found.tls_offset + offset
    return Absent("it is thread-local, and the rank has no such block of its own")


class Resolver:
    """Effective addresses, for one target. Relocations are read once per object."""

    def __init__(self, target: Target, table: RankTable) -> None:
        self._target = target
        self._table = table
        self._slots: dict[int, Union[Slots, Absent]] = {}

    def effective(self, rank: Rank, found: Object, vaddr: int) -> Union[int, Absent]:
        """The address that the rank's code uses for the variable at `vaddr`, by its GOT slot.

        Absent if the code reaches it without a slot: then the nominal address is what it uses.
        """
        if found.index not in self._slots:
            self._slots[found.index] = read_slots(self._target, found)
        slots = self._slots[found.index]
        if isinstance(slots, Absent):
            return slots
        slot = slots.of(vaddr)
        if slot is None:
            return Absent("the code reaches it without a GOT slot")
        place = address(rank, found, slot)
        if isinstance(place, Absent):
            return place
        try:
            value: int = struct.unpack("<Q", self._target.read(place, 8))[0]
        except MemoryUnreadable as error:
            return Absent(error.sentence)
        return value


@dataclass(frozen=True)
class Slots:
    """The GOT slots of one file that name its own variables."""

    slots: tuple[Slot, ...]

    @cached_property
    def _by_variable(self) -> dict[int, int]:
        return {one.variable: one.vaddr for one in self.slots}

    def of(self, variable: int) -> Optional[int]:
        """The vaddr of the slot for the variable that begins at a vaddr, or None."""
        return self._by_variable.get(variable)


def read_slots(target: Target, found: Object) -> Union[Slots, Absent]:
    """The slots of the object's file, or why it can't be read."""
    path = object_path(target, identity_of(found))
    if isinstance(path, Absent):
        return path
    try:
        with ElfFile(path) as elf:
            return Slots(tuple(_glob_dat(elf)))
    except ObjectFileError as error:
        return Absent(error.sentence, error.hint)


def _glob_dat(elf: ElfFile) -> list[Slot]:
    """R_*_GLOB_DAT relocations against symbols that the file itself defines."""
    symbols = elf.dynamic_value(DT_SYMTAB)
    if symbols is None or elf.dynamic_value(DT_STRTAB) is None:
        return []
    found = []
    for one in elf.relocations():
        if one.type in GLOB_DAT.get(elf.header.machine, ()):
            entry = struct.unpack(elf.header.order + "IBBHQQ", elf.at(symbols + SYMBOL_SIZE * one.symbol, SYMBOL_SIZE))
            if entry[3] != 0:
                found.append(Slot(one.offset, entry[4]))
    return found
