"""Find AMPI's loader (the file with the runtime, which loads the user's program), and read its variables by `.symtab`.

Takes a target; gives `Loader`, or None if no mapped file is AMPI's loader. Values are read, not yet validated: users
of them ask `Space.is_valid` first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.elf.file import SHT_DYNSYM, ElfFile
from pieglobalsfind.elf.loaded import LoadedElf, exporters
from pieglobalsfind.elf.named_symbols import symbols
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError, RanklensError
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.target import MemoryMapping, Target, file_starts, word_at

START, END, SLOT, COUNT = "_ZL14isomallocStart", "_ZL12isomallocEnd", "_ZL8slotsize", "_ZL7nChunks"
ENTRY = "_ZL17startTCharmThreadP13TCharmInitMsg"
CURRENT, CURRENT_SMP = "_ZL15Cpv_CthCurrent_", "_ZL20Cpv_addr_CthCurrent_"
RANKDATA, TLS = "_ZL8rankdata", "_ZL17CmiTLSDescription"
PIE = "_ZL14pieglobalsdata"
SWAPPED, SWAPS = "_ZL8_ctgList", "_ZN13CtgGlobalListC1Ev"  # of -swapglobals alone; the second one is exported
EPOCH = "_ZL5epoch"  # where Charm++'s clock begins
ELEMENT, PROCESS, PROCESSES = "_Cmi_mype", "_Cmi_mynode", "_Cmi_numnodes"
NEEDED = (START, END, SLOT, COUNT, ENTRY)
NAMES = (*NEEDED, CURRENT, CURRENT_SMP, PIE, RANKDATA, TLS, SWAPPED, EPOCH, ELEMENT, PROCESS, PROCESSES)
EXPORTED = "TCHARM_Element_Setup"  # every loader exports it, also a stripped one
MOST_RANKS = 1 << 20
MOST_ELEMENTS = 1 << 12  # processing elements of one process
LARGEST_TLS = 1 << 26  # bytes
SWITCHES = ("CthResume", "swapJcontext", "setJcontext", "jump_fcontext", "make_fcontext", "CthStartThread")


@dataclass(frozen=True)
class Space:
    """Isomalloc's range: rank r begins at a fixed place in it, the same in every process of the job."""

    start: int
    end: int
    slot: int
    count: int

    @property
    def is_valid(self) -> bool:
        """Whether these can be what they are taken for."""
        whole = 0 < self.count <= MOST_RANKS and self.slot > 0 and self.slot & (self.slot - 1) == 0
        return whole and 0 < self.start < self.end and (self.end - self.start) // self.slot > self.count

    @property
    def is_unset(self) -> bool:
        """Whether AMPI, which is starting, has not set these yet: they are zero until then."""
        return self.start == self.end == 0 or self.count == 0

    def begin(self, rank: int) -> int:
        """Where the rank's slots begin; one more share than ranks is for constructors."""
        return self.start + (self.end - self.start) // self.slot * rank // (self.count + 1) * self.slot

    def rank_at(self, address: int) -> Optional[int]:
        """The rank whose share holds the address."""
        if not self.start <= address < self.end:
            return None
        guess = (address - self.start) * (self.count + 1) // (self.end - self.start)
        near = (slot for slot in range(max(0, guess - 1), min(self.count, guess + 2)))
        return next((slot for slot in near if self.begin(slot) <= address < self.begin(slot + 1)), None)


@dataclass(frozen=True)
class Loader:
    """The loader in memory. `currents` are (element, address of the pointer to the thread that it runs).

    `own_current`: in SMP builds, where in the loader's thread-local block each kernel thread has its own such address.
    `swaps`: -swapglobals; `swapped` then is where the pointer to its list of globals is (0: not known).
    `tls` is the size and the alignment of a rank's TLS block in bytes, None if ranks have none; `rank_data` where the
    vector of the ranks' objects is (pip and fs). Of a stripped one `currents` and `rank_data` are not known.
    """

    elf: LoadedElf
    path: str
    space: Space
    entry: int
    entry_size: int
    currents: tuple[tuple[int, int], ...]
    own_current: Optional[int] = None
    is_pie: bool = False
    rank_data: Optional[int] = None
    tls: Optional[tuple[int, int]] = None
    swaps: bool = False
    swapped: int = 0
    epoch: Optional[int] = None
    process_index: int = 0
    process_count: int = 1
    is_stripped: bool = False

    def has_code(self, address: int) -> bool:
        """Whether an address is in the loader's own text."""
        at = address - self.elf.load_bias
        return any(
            segment.flags & 1 and segment.vaddr <= at < segment.vaddr + segment.file_size
            for segment in self.elf.segments
        )


def find_loader(target: Target, maps: Sequence[MemoryMapping]) -> Optional[Loader]:
    """The loader among the mapped files; None if there is none, or if it is stripped of `.symtab`."""
    paths = {mapping.start: mapping.path for mapping in file_starts(maps)}
    for loaded, _ in exporters(target.read, file_starts(maps), EXPORTED):
        with suppress(ObjectFileError, MemoryUnreadable):
            loader = _loader_of(target, loaded, paths[loaded.base])
            if loader is not None:
                return loader
    return None


def has_loader(target: Target, maps: Sequence[MemoryMapping]) -> bool:
    """Whether a mapped file is AMPI's loader by what it exports, stripped or not."""
    return any(True for _ in exporters(target.read, file_starts(maps), EXPORTED))


def _loader_of(target: Target, loaded: LoadedElf, mapped: str) -> Optional[Loader]:
    path = target.open_path(mapped)
    if path is None or loaded.header.machine not in PROCESSORS:
        return None
    with ElfFile(path) as elf:
        if elf.build_id != loaded.build_id:
            return None
        at = symbols(elf, loaded.load_bias, NAMES)
    if any(name not in at for name in NEEDED):
        return None
    start, end, slot = (word_at(target, at[name][0]) for name in (START, END, SLOT))
    has_process = PROCESS in at and PROCESSES in at
    return Loader(
        elf=loaded,
        path=mapped,
        space=Space(start, end, slot, number_at(target, at[COUNT][0])),
        entry=at[ENTRY][0],
        entry_size=at[ENTRY][1],
        currents=_currents(target, at),
        own_current=at[CURRENT][0] - loaded.load_bias if CURRENT in at and CURRENT_SMP in at else None,
        is_pie=PIE in at,
        rank_data=at[RANKDATA][0] if RANKDATA in at else None,
        tls=_tls(target, at[TLS][0]) if TLS in at else None,
        swaps=loaded.symbol(SWAPS) is not None,
        swapped=at[SWAPPED][0] if SWAPPED in at else 0,
        epoch=at[EPOCH][0] if EPOCH in at else None,
        process_index=number_at(target, at[PROCESS][0]) if has_process else 0,
        process_count=number_at(target, at[PROCESSES][0]) if has_process else 1,
    )


def _currents(target: Target, at: dict[str, tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Where each processing element keeps the thread that it runs: a variable, in SMP builds one of each thread."""
    if CURRENT_SMP in at:
        table, size = at[CURRENT_SMP]
        count = min(size // 8 or MOST_ELEMENTS, MOST_ELEMENTS)
        if size == 8:  # a pointer to the array
            table, count = word_at(target, table), MOST_ELEMENTS
        pointers = []
        for element in range(count):
            try:
                pointer = word_at(target, table + 8 * element)
                word_at(target, pointer)
            except MemoryUnreadable:
                break
            pointers.append((element, pointer))
        return tuple(pointers)
    if CURRENT in at:
        return ((number_at(target, at[ELEMENT][0]) if ELEMENT in at else 0, at[CURRENT][0]),)
    return ()


def _tls(target: Target, address: int) -> Optional[tuple[int, int]]:
    size, align = struct.unpack("<QQ", target.read(address, 16))
    return (size, align) if 0 < size <= LARGEST_TLS and align and align & (align - 1) == 0 else None


def number_at(target: Target, address: int) -> int:
    """The 4 bytes at an address as a number; raises `MemoryUnreadable`."""
    value: int = struct.unpack("<i", target.read(address, 4))[0]
    return value


def switching_code(target: Target) -> tuple[tuple[int, int], ...]:
    """(start, end) of every function of a switch; () where they are not exported, or the target is not AMPI.

    A kernel thread whose pc lies there has left a rank whose saved context is still that of its last wait (Charm++,
    uFcontext.h: the thread that continues stores it).
    """
    paths = {mapping.start: mapping.path for mapping in file_starts(target.maps())}
    for loaded, _ in exporters(target.read, file_starts(target.maps()), EXPORTED):
        with suppress(RanklensError):
            path = target.open_path(paths[loaded.base])
            if path is not None:
                with ElfFile(path) as elf:
                    places = symbols(elf, loaded.load_bias, SWITCHES, SHT_DYNSYM)
                return tuple((at, at + size) for at, size in places.values())
    return ()
