"""Ranks of stock Charm++/AMPI under `-pieglobals`, without a hook: the loader's own variables, found by `.symtab`.

Takes a target and what the scan for copies found; gives the table with true rank numbers, stacks and saved contexts, or
None if the target is not AMPI. Nothing is believed that does not validate; other methods and Charm++'s threads other
than fcontext on x86-64 are not decoded.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind import model
from pieglobalsfind.elf import EM_X86_64, SHT_SYMTAB, SYMBOL_SIZE, ElfFile, open_elf
from pieglobalsfind.elf_memory import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Absent, Evidence, Rank, RankTable, Rebase, Region, RegisterRule
from pieglobalsfind.target import MemoryMapping, Target

EVIDENCE = Evidence("runtime", "AMPI's own variables, by .symtab")
START, END, SLOT, COUNT = "_ZL14isomallocStart", "_ZL12isomallocEnd", "_ZL8slotsize", "_ZL7nChunks"
ENTRY, CURRENT = "_ZL17startTCharmThreadP13TCharmInitMsg", "_ZL15Cpv_CthCurrent_"
ENTRY_SIZE = "bytes of the entry"
NEEDED = (START, END, SLOT, COUNT, ENTRY)
MISMATCH = "this looks like AMPI, but its layout does not validate: ranks are numbered by ascending address"
MOST_RANKS = 1 << 20
MOST_TRIES = 20
LARGEST_AREA = 1 << 28  # bytes of one mapping that are searched for threads
SAVED_PC, SAVED_SIZE = 0x40, 0x48  # boost's jump_fcontext, System V x86-64
THREAD_REACH = 0x200  # a thread structure begins at most so far before its context
# DWARF numbers (x86-64 psABI, figure 3.36): r12 to r15, rbx, rbp, rip; rsp is behind what was saved.
SAVED = ((12, 0x10), (13, 0x18), (14, 0x20), (15, 0x28), (3, 0x30), (6, 0x38), (16, SAVED_PC))
LAYOUT = (*(RegisterRule(number, True, at) for number, at in SAVED), RegisterRule(7, False, SAVED_SIZE))
_RUNNING = Absent("it may be running", "stop it in a debugger, or take a core file with gcore")
_NO_THREAD = Absent("no thread of AMPI validates as its own")


@dataclass(frozen=True)
class Space:
    """Isomalloc's range and the loader's facts; rank r begins at a fixed place in every process of the job."""

    start: int
    end: int
    slot: int
    count: int
    entry: int
    current: Optional[int]
    current_at: Optional[int] = None
    entry_size: int = 0

    @property
    def is_valid(self) -> bool:
        """Whether these can be what they are taken for."""
        whole = 0 < self.count <= MOST_RANKS and self.slot > 0 and self.slot & (self.slot - 1) == 0
        return whole and 0 < self.start < self.end and (self.end - self.start) // self.slot > self.count

    def begin(self, rank: int) -> int:
        """Where the rank's slots begin; one more share than ranks is for constructors."""
        return self.start + (self.end - self.start) // self.slot * rank // (self.count + 1) * self.slot

    def rank_at(self, address: int) -> Optional[int]:
        """The rank whose share holds the address."""
        if not self.start <= address < self.end:
            return None
        guess = (address - self.start) * (self.count + 1) // (self.end - self.start)
        near = (one for one in range(max(0, guess - 1), min(self.count, guess + 2)))
        return next((one for one in near if self.begin(one) <= address < self.begin(one + 1)), None)


@dataclass(frozen=True)
class Thread:
    """A user-level thread by its signature: {context, entry, end of stack, flags, size}, found at `address`."""

    address: int
    context: int
    stack: Region


def improve(target: Target, scanned: RankTable) -> Optional[RankTable]:
    """The scanned table with what AMPI itself knows; None if the target is not AMPI."""
    maps = target.maps()
    space = _space(target, maps)
    if space is None:
        return None
    ranks = _numbered(space, scanned) if space.is_valid else None
    if ranks is None:
        return dataclasses.replace(scanned, warnings=(*scanned.warnings, MISMATCH))
    space, threads = _steady_threads(target, maps, space)
    return dataclasses.replace(
        scanned,
        method="pie",
        runtime="AMPI",
        rank_count=space.count,
        ranks=tuple(_rank(target, number, held, threads.get(number, []), space) for number, held in ranks.items()),
        context_layout=LAYOUT,
        entry_function=space.entry,
        entry_function_size=space.entry_size,
        evidence=EVIDENCE,
        warnings=(),
    )


def _steady_threads(
    target: Target, maps: Sequence[MemoryMapping], space: Space
) -> tuple[Space, dict[int, list[Thread]]]:
    """All threads, read while one and the same was the current one; no threads if a running job never kept still."""
    for _ in range(MOST_TRIES if target.is_live else 1):
        threads = _threads(target, maps, space)
        if not target.is_live or space.current_at is None:
            return space, threads
        now = _word(target, space.current_at)
        if now == space.current:
            return space, threads
        space = dataclasses.replace(space, current=now)
    return space, {}


def _space(target: Target, maps: Sequence[MemoryMapping]) -> Optional[Space]:
    for one in maps:
        if one.offset == 0 and one.readable and one.path.startswith("/"):
            try:
                found = _space_of(target, one)
            except (ObjectFileError, MemoryUnreadable, struct.error):
                continue
            if found is not None:
                return found
    return None


def _space_of(target: Target, mapping: MemoryMapping) -> Optional[Space]:
    path = target.open_path(mapping.path)
    if path is None:
        return None
    with open_elf(path) as elf:
        loaded = LoadedElf(target.read, mapping.start)
        if elf.header.machine != EM_X86_64 or elf.build_id != loaded.build_id:
            return None
        at = _symbols(elf)
        if any(name not in at for name in NEEDED):
            return None
        entry_size = at[ENTRY_SIZE]
    bias = loaded.load_bias
    start, end, slot = (_word(target, bias + at[name]) for name in (START, END, SLOT))
    count = struct.unpack("<i", target.read(bias + at[COUNT], 4))[0]
    current_at = bias + at[CURRENT] if CURRENT in at else None
    current = None if current_at is None else _word(target, current_at)
    return Space(start, end, slot, count, bias + at[ENTRY], current, current_at, entry_size)


def _symbols(elf: ElfFile) -> dict[str, int]:
    """The vaddrs of the names that matter, from `.symtab`, and the size of the ranks' entry in bytes."""
    for table in elf.sections:
        if table.type == SHT_SYMTAB and table.link < len(elf.sections):
            strings = elf.section_bytes(elf.sections[table.link])
            places = {strings.find(b"\0" + name.encode() + b"\0") + 1: name for name in (*NEEDED, CURRENT)}
            data = elf.section_bytes(table)
            rows = struct.iter_unpack("<IIQQ", data[: len(data) - len(data) % SYMBOL_SIZE])
            found = {places[name]: (value, size) for name, _, value, size in rows if name and name in places}
            vaddrs = {name: value for name, (value, _) in found.items()}
            return {**vaddrs, ENTRY_SIZE: found.get(ENTRY, (0, 0))[1]}
    return {}


def _word(target: Target, address: int) -> int:
    word: int = struct.unpack("<Q", target.read(address, 8))[0]
    return word


def _numbered(space: Space, scanned: RankTable) -> Optional[dict[int, tuple[Rebase, ...]]]:
    """Each rank's copies by the share that they lie in; None if one lies in nobody's."""
    found: dict[int, tuple[Rebase, ...]] = {}
    for rank in scanned.ranks:
        for one in rank.placements:
            number = space.rank_at(one.copy) if isinstance(one, Rebase) else None
            if number is None or not isinstance(one, Rebase):
                return None
            found[number] = (*found.get(number, ()), one)
    return dict(sorted(found.items()))


def _threads(target: Target, maps: Sequence[MemoryMapping], space: Space) -> dict[int, list[Thread]]:
    found: dict[int, list[Thread]] = {}
    for one in maps:
        heap = one.path in ("", "[heap]") and one.readable and one.writable
        if heap and one.end - one.start <= LARGEST_AREA and not space.start <= one.start < space.end:
            for thread in _threads_in(target, one, space.entry):
                number = space.rank_at(thread.stack.start)
                if number is not None and space.begin(number) == thread.stack.start:
                    found.setdefault(number, []).append(thread)
    return found


def _threads_in(target: Target, mapping: MemoryMapping, entry: int) -> Iterator[Thread]:
    try:
        data = target.read(mapping.start, mapping.end - mapping.start)
    except MemoryUnreadable:
        return
    pattern, at = struct.pack("<Q", entry), -1
    while (at := data.find(pattern, at + 1)) >= 0:
        if at >= 8 and at % 8 == 0 and at + 32 <= len(data):
            context, _, end, _, size = struct.unpack_from("<QQQQQ", data, at - 8)
            if 0 < size < end and end - size <= context <= end - SAVED_SIZE:
                yield Thread(mapping.start + at - 8, context, Region(end - size, size))


def _rank(target: Target, number: int, held: tuple[Rebase, ...], threads: list[Thread], space: Space) -> Rank:
    thread = threads[0] if len({(one.context, one.stack) for one in threads}) == 1 else None
    unknown = Absent("AMPI's heap is not decoded yet")
    running = thread is not None and space.current is not None and 0 <= thread.address - space.current < THREAD_REACH
    return Rank(
        rank=number,
        state=model.RUNNING if running else model.READY,
        processing_element=0,
        kernel_thread=0,
        context=_context(target, thread, running or space.current is None),
        stack=thread.stack if thread else _NO_THREAD,
        heap=unknown,
        heap_used=unknown,
        range=Region(space.begin(number), space.begin(number + 1) - space.begin(number)),
        waiting=None,
        switches=Absent("AMPI does not count them"),
        placements=held,
        evidence=EVIDENCE,
    )


def _context(target: Target, thread: Optional[Thread], running: bool) -> Union[int, Absent]:
    """The saved context, if the thread can't be running and what it would return to is mapped code."""
    if thread is None:
        return _NO_THREAD
    if running:
        return _RUNNING
    try:
        pc = _word(target, thread.context + SAVED_PC)
    except MemoryUnreadable:
        return _NO_THREAD
    code = any(one.executable and one.start <= pc < one.end for one in target.maps())
    return thread.context if code else _NO_THREAD
