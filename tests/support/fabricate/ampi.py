"""Writes the memory of a stock AMPI job as measured on real ones: a loader with its variables, threads, copies.

Takes how the job is built and what is damaged; gives a `MemoryTarget` and the truth. The decoder's code is not used.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from tests.support.fabricate.elf_file import Symbol, program_header, shared_object
from tests.support.fabricate.memory import Mapped, MemoryTarget, SparseBytes, SparseTarget

MEGABYTE = 1 << 20
LOADER, HEAP, FIRST = 0x555500000000, 0x555600000000, 0x400000000
RANKS = 4
SLOTS = 50
SHARE = 10 * MEGABYTE  # SLOTS * r // (RANKS + 1) slots
TEXT = LOADER + 0x1100
USER = 0x7F0000000000
SWAP_END = 0x7E0000000A38
USED = 0x50000  # bytes of isomalloc's share behind the stack
TLS_SIZE = 0x100
NAMES = {
    "start": "_ZL14isomallocStart",
    "end": "_ZL12isomallocEnd",
    "slot": "_ZL8slotsize",
    "count": "_ZL7nChunks",
    "entry": "_ZL17startTCharmThreadP13TCharmInitMsg",
    "current": "_ZL15Cpv_CthCurrent_",
    "pie": "_ZL14pieglobalsdata",
    "links": "_ZL8rankdata",
    "tls": "_ZL17CmiTLSDescription",
}
PLACES = {"start": 0, "end": 8, "slot": 16, "count": 24, "current": 32, "pie": 40, "links": 48, "tls": 80, "region": 96}
PLACES.update({"groups": 112, "arrays": 128, "elements": 192, "parents": 256, "receives": 320, "sends": 384})
DATA, DYNAMIC = 0x2000, 0x2400  # vaddrs
HASH, EXPORTS, STRINGS = 0x500, 0x580, 0x680  # in the data
PARENTS = 0x18000  # in the heap
WORLD, PART = 1_000_000, 1_000_002  # communicators


@dataclass(frozen=True)
class Request:
    """One of AMPI's requests; `other` is the source, or, if it `is_sent` (synchronously), the destination."""

    other: int
    tag: int
    communicator: int = WORLD
    is_sent: bool = False
    is_complete: bool = False
    is_blocked: bool = True


@dataclass
class Job:
    """`before` is the distance from a thread's start to its context, which differs between builds."""

    method: str = "none"
    before: int = 0xA0
    running: int = 0
    absent: tuple[int, ...] = ()  # ranks of other processes
    stale: tuple[int, ...] = ()  # freed structures: their first words are overwritten
    unsaved: tuple[int, ...] = ()  # their saved pc is not code of the loader's
    twice: tuple[int, ...] = ()  # two structures that both look alive
    slot: int = MEGABYTE
    is_starting: bool = False  # nothing is laid out
    no_tokens: bool = False
    is_live: bool = False
    stripped: bool = False
    silent: tuple[int, ...] = ()  # isomalloc's records of their shares are damaged
    has_tables: bool = False  # Charm++'s group table leads to the threads
    moved: tuple[int, ...] = ()  # ranks whose elements have left, while their stacks are still mapped
    heap_size: int = 0x20000
    heap_at: int = 0  # offset of all that is in the heap
    mixed: tuple[int, ...] = ()  # their stacks hold addresses in another rank's code, too
    is_aarch64: bool = False  # threads are ucontexts then
    is_swapped: bool = True  # their contexts are of swapcontext
    signature: int = 0  # in the high bits of the pc that a ucontext saves
    requests: Mapping[int, tuple[Request, ...]] = field(default_factory=dict)  # by rank; needs tables
    part: tuple[int, ...] = ()  # the members of PART; without any, ranks have no table of communicators

    @property
    def heap(self) -> int:
        """Where what is in the heap begins."""
        return HEAP + self.heap_at

    def begin(self, rank: int) -> int:
        """Where the rank's share of the addresses, and its stack, begins."""
        return FIRST + SHARE * rank

    def context(self, rank: int) -> int:
        return self.thread(rank) + self.before if self.is_aarch64 else self.pointer(rank)

    def pointer(self, rank: int) -> int:
        """The rank's saved stack pointer, or near it."""
        return self.begin(rank) + MEGABYTE - 0x200

    def _context_words(self, rank: int) -> list[int]:
        """Of swapcontext: x0 is 0, x1 its caller; its own end is pc and link register. Of makecontext pc is code."""
        words = [1000 * rank + number for number in range(31)]
        pc = self._saved_pc(rank)
        if self.is_swapped:
            words[0], words[1], words[30], pc = 0, pc, SWAP_END, SWAP_END
        return [*words, self.pointer(rank), pc | self.signature]

    def _saved_pc(self, rank: int) -> int:
        return self.heap if rank in self.unsaved or rank == self.running else TEXT + 0x20

    def copy(self, rank: int) -> int:
        """Where the rank's copy of the program begins."""
        return self.begin(rank) + MEGABYTE if self.method == "pie" else USER + 0x100000 * (rank + 1)

    def target(self, folder: Path) -> MemoryTarget:
        """The job; the loader's file is written into `folder`."""
        path = folder / "prog"
        loader = self._loader()
        path.write_bytes(loader)
        mapped = [
            Mapped(LOADER, 0x1000, loader[:0x1000], str(path), "r--"),
            Mapped(LOADER + 0x1000, 0x1000, loader[0x1000:0x2000], str(path), "r-x", 0x1000),
            Mapped(LOADER + 0x2000, 0x1000, self._variables(), str(path), "rw-", 0x2000),
            Mapped(HEAP, self.heap_size, SparseBytes.of({self.heap_at: self._heap()}), "[heap]"),
        ]
        if self.is_aarch64:
            code = struct.pack("<3I", 0xD503201F, 0xAA0103FE, 0xD65F03C0)  # nop; mov x30, x1; ret
            mapped.append(Mapped(SWAP_END & ~0xFFF, 0x1000, SparseBytes.of({SWAP_END & 0xFFF: code}), "/lib/c", "r-x"))
        here = (rank for rank in range(RANKS) if rank not in self.absent)
        stacks = [Mapped(self.begin(rank), MEGABYTE, self._stack(rank)) for rank in here]
        return _Target([*mapped, *stacks, *self._objects(folder)], self.is_live)

    # ---- the loader ----

    def _loader(self) -> bytes:
        kinds = {"pie": ("pie",), "pip": ("links",), "fs": ("links",), "tls": ("tls",), "none": ()}[self.method]
        names = [*("start", "end", "slot", "count", "current"), *kinds]
        symbols = [Symbol(NAMES[name], DATA + PLACES[name], 16, 0x01, 2) for name in names]
        symbols.append(Symbol(NAMES["entry"], TEXT - LOADER, 0x40))
        if self.stripped:
            symbols = []
        data = bytearray(shared_object(tuple(symbols), b"\x22" * 20))
        struct.pack_into("<H", data, 56, 6)
        data[64 + 4 * 56 : 64 + 5 * 56] = program_header(2, 6, DYNAMIC, DYNAMIC, 0x60, 0x60)
        data[64 + 5 * 56 : 64 + 6 * 56] = program_header(7, 4, DYNAMIC + 0x800, DYNAMIC + 0x800, 0, TLS_SIZE - 0x40)
        return self._machine(bytes(data))

    def _machine(self, elf: bytes) -> bytes:
        return elf[:18] + struct.pack("<H", 183) + elf[20:] if self.is_aarch64 else elf

    def _variables(self) -> bytes:
        data = bytearray(0x1000)
        end = FIRST + SLOTS * MEGABYTE
        if not self.is_starting:
            struct.pack_into("<QQQi", data, 0, FIRST, end, self.slot, RANKS)
        struct.pack_into("<Q", data, PLACES["current"], self.thread(self.running))
        struct.pack_into("<QQQ", data, PLACES["links"], self.heap + 0x10000, self.heap + 0x10000 + 24 * RANKS, 0)
        struct.pack_into("<QQ", data, PLACES["tls"], TLS_SIZE if self.method == "tls" else 0, 16)
        struct.pack_into("<QQ", data, PLACES["region"], FIRST, end)
        struct.pack_into("<Q", data, PLACES["groups"], self.heap + 0x14000)
        # DT_HASH, DT_STRTAB, DT_SYMTAB, DT_DEBUG
        base = LOADER + DATA
        tags = (4, base + HASH, 5, base + STRINGS, 6, base + EXPORTS, 21, self.heap + 0x11000, 0, 0)
        struct.pack_into("<10Q", data, 0x400, *tags)
        self._write_exports(data)
        return bytes(data)

    def _write_exports(self, data: bytearray) -> None:
        """What a stripped loader has still; all in one chain of the one bucket."""
        exports = [("TCHARM_Element_Setup", 0x12, 0x1200), ("IsoRegion", 0x11, DATA + PLACES["region"])]
        exports += {
            "pie": [("_Z14pieglobalsfindPv", 0x12, 0x1240)],
            "tls": [("CmiTLSGetDescription", 0x12, 0x1280)],
        }.get(self.method, [])
        if self.has_tables:
            exports += [("Cpv__groupTable_", 0x11, DATA + PLACES["groups"])]
            exports += [("_ZTV7CkArray", 0x21, DATA + PLACES["arrays"])]
            exports += [("_ZTV6TCharm", 0x21, DATA + PLACES["elements"])]
        if self.requests:
            exports += [("_ZTV10ampiParent", 0x21, DATA + PLACES["parents"])]
            exports += [("_ZTV4IReq", 0x21, DATA + PLACES["receives"])]
            exports += [("_ZTV8SsendReq", 0x21, DATA + PLACES["sends"])]
        count = len(exports) + 1
        struct.pack_into(f"<{3 + count}I", data, HASH, 1, count, 1, 0, *range(2, count), 0)
        at = 1
        for index, (name, info, value) in enumerate(exports, 1):
            encoded = name.encode() + b"\0"
            data[STRINGS + at : STRINGS + at + len(encoded)] = encoded
            struct.pack_into("<IBBHQQ", data, EXPORTS + 24 * index, at, info, 0, 1, value, 16)
            at += len(encoded)

    # ---- the heap: threads, tokens, isomalloc's records, the system loader's lists ----

    def thread(self, rank: int) -> int:
        """Where the rank's thread begins."""
        return self.heap + 0x1000 * (rank + 1)

    def _heap(self) -> bytes:
        data = bytearray(0x20000)
        for rank in range(RANKS):
            self._write_thread(data, rank, self.thread(rank))
            if rank in self.twice:
                self._write_thread(data, rank, self.thread(rank) + 0x8000)
        self._write_links(data)
        if self.has_tables:
            self._write_tables(data)
        if self.requests:
            self._write_requests(data)
        return bytes(data)

    def _write_thread(self, data: bytearray, rank: int, start: int) -> None:
        at, end = start - self.heap, self.begin(rank) + MEGABYTE
        token = 0x1234567 if rank in self.stale or self.no_tokens else start + 0x400
        struct.pack_into("<Q", data, at, token)
        struct.pack_into("<Q", data, at + 0x78, start + 0x600)
        struct.pack_into("<Q", data, at + 0x80, end + TLS_SIZE)
        if self.is_aarch64:
            self._write_ucontext(data, rank, at + self.before)
        else:
            struct.pack_into("<QQQQQ", data, at + self.before, self.context(rank), TEXT, end, 0, MEGABYTE)
        struct.pack_into("<Q", data, at + 0x400 + 32, start)
        struct.pack_into("<Q", data, at + 0x600 + 30, self.begin(rank))  # as packed fields happen to look
        last = end - 8 if rank in self.silent else self.begin(rank + 1)
        struct.pack_into("<QQQ", data, at + 0x600 + 56, self.begin(rank), last, end + USED)

    def _write_ucontext(self, data: bytearray, rank: int, at: int) -> None:
        """Glibc's, of AArch64: flags, link, stack; x0 to x30, sp and pc in the mcontext_t."""
        struct.pack_into("<QQQQQ", data, at, 0, 0, self.begin(rank), 0, MEGABYTE)
        struct.pack_into("<33Q", data, at + 184, *self._context_words(rank))

    def _write_tables(self, data: bytearray) -> None:
        """A GroupTable, in it a group that is none and a CkArray, in that a vector of others and one of TCharms."""
        table, array, first, element = (self.heap + offset for offset in (0x14000, 0x15000, 0x16000, 0x17000))
        here = [rank for rank in range(RANKS) if rank not in (*self.absent, *self.moved)]
        groups = (0, self.heap, array, *((self.heap + PARENTS,) if self.requests else ()))
        struct.pack_into("<QQi", data, table - self.heap, table + 0x100, 0, len(groups))
        for number, group in enumerate(groups):
            struct.pack_into("<QQi?", data, table - self.heap + 0x100 + 24 * number, group, 0, number, True)
        struct.pack_into("<Q", data, array - self.heap, LOADER + DATA + PLACES["arrays"] + 16)
        struct.pack_into("<QQQ", data, array - self.heap + 0x100, self.heap, self.heap + 0x800, self.heap + 0x1000)
        last = first + 8 * len(here)
        struct.pack_into("<QQQ", data, array - self.heap + 0x398, first, last, last)
        for number, rank in enumerate(here):
            place = element + 0x200 * rank
            struct.pack_into("<Q", data, first - self.heap + 8 * number, place)
            struct.pack_into("<Q", data, place - self.heap, LOADER + DATA + PLACES["elements"] + 24)
            struct.pack_into("<QQ", data, place - self.heap + 0xA0, LOADER, self.thread(rank))

    def _write_requests(self, data: bytearray) -> None:
        """A CkArray of ampiParents, in each a pointer to its TCharm and a vector of requests."""
        places = [self.heap + PARENTS + 0x1000 + 0x400 * rank for rank in range(RANKS)]
        struct.pack_into("<Q", data, PARENTS, LOADER + DATA + PLACES["arrays"] + 16)
        struct.pack_into("<3Q", data, PARENTS + 0x398, *(self.heap + PARENTS + end for end in (0x800, 0x820, 0x820)))
        struct.pack_into(f"<{RANKS}Q", data, PARENTS + 0x800, *places)
        for rank, place in enumerate(places):
            at, held = place - self.heap, PARENTS + 0x2000 + 0x200 * rank
            struct.pack_into("<Q", data, at, LOADER + DATA + PLACES["parents"] + 24)
            struct.pack_into("<Q", data, at + 0xA0, self.heap + 0x17000 + 0x200 * rank)
            struct.pack_into("<3Q", data, at + 0xD0, *(self.heap + held + end for end in (0, 64, 64)))
            if self.part:
                self._write_communicators(data, at + 0x300)
            for number, request in enumerate(self.requests.get(rank, ()), 1):  # the first one has been freed
                self._write_request(data, held + 0x40 * number, number, request)
                struct.pack_into("<Q", data, held + 8 * number, self.heap + held + 0x40 * number)

    def _write_communicators(self, data: bytearray, at: int) -> None:
        """An unordered_map with two nodes: in the first one the members are listed, in the other they are all ranks."""
        nodes = PARENTS + 0x3000, PARENTS + 0x3100
        struct.pack_into("<4Q", data, at, self.heap + 0x100, 13, self.heap + nodes[0], 2)
        members = self.heap + PARENTS + 0x3200
        struct.pack_into(f"<{len(self.part)}i", data, members - self.heap, *self.part)
        ends = members, members + 4 * len(self.part), members + 4 * len(self.part)
        struct.pack_into("<Qi4x3iB3x", data, nodes[0], self.heap + nodes[1], PART, PART, 9, len(self.part), 1)
        struct.pack_into("<i4x3Q", data, nodes[0] + 32, -1, *ends)
        struct.pack_into("<Qi4x3iB3x", data, nodes[1], 0, WORLD, WORLD, 8, RANKS, 0)
        struct.pack_into("<i4x3Q", data, nodes[1] + 32, RANKS, 0, 0, 0)

    def _write_request(self, data: bytearray, at: int, number: int, request: Request) -> None:
        """AmpiRequest: table, buffer, count, type, tag, source, communicator, number, what it is; the destination."""
        table = LOADER + DATA + PLACES["sends" if request.is_sent else "receives"] + 16
        source = -1 if request.is_sent else request.other
        marks = request.is_complete, request.is_blocked, False, False
        words = request.tag, source, request.communicator, number
        struct.pack_into("<QQ2i4i4?i", data, at, table, 0, 1, 5, *words, *marks, request.other)

    def _write_links(self, data: bytearray) -> None:
        """struct r_debug, and link_maps {addr, name, ld, next, prev}: the loader's, then one of each rank."""
        head = self.heap + 0x11400
        handles = [self.heap + 0x12000 + 0x100 * rank for rank in range(RANKS)]
        for rank, handle in enumerate(handles):
            struct.pack_into("<QQQ", data, 0x10000 + 24 * rank, 0, 0, handle)
        chain = [head, *handles] if self.method == "fs" else [head]
        lists = [chain] if self.method == "fs" else [chain, *([handle] for handle in handles)]
        spaces = [0x11000 + 0x40 * index for index in range(len(lists))]  # struct r_debug_extended
        for at, one, following in zip(spaces, lists, [*spaces[1:], -self.heap]):
            struct.pack_into("<QQQQQQ", data, at, 2, one[0], 0, 0, 0, self.heap + following)
        for one in lists:
            for index, link in enumerate(one):
                bias = LOADER if link == head else self.copy(handles.index(link))
                following = one[index + 1] if index + 1 < len(one) else 0
                struct.pack_into("<5Q", data, link - self.heap, bias, 0, 0, following, one[index - 1] if index else 0)

    # ---- ranks ----

    def _stack(self, rank: int) -> bytes:
        """Nothing but the frames at its top."""
        frames = bytearray(0x200)
        struct.pack_into("<Q", frames, 0x40, self._saved_pc(rank))
        struct.pack_into("<Q", frames, 0x180, self.copy(rank) + 0x1100)  # where what its main calls returns to
        if rank in self.mixed:
            struct.pack_into("<Q", frames, 0x178, self.copy((rank + 1) % RANKS) + 0x1100)
        return SparseBytes.of({self.pointer(rank) - self.begin(rank): bytes(frames)})

    def _objects(self, folder: Path) -> list[Mapped]:
        """The program's own object and its copies."""
        image = self._machine(shared_object((Symbol("main", 0x1000, 16),)))
        found = []
        places: list[tuple[int, str]] = []
        if self.method == "pie":
            places = [
                (USER, "prog.user.so"),
                *((self.copy(rank), "") for rank in range(RANKS) if rank not in self.absent),
            ]
        elif self.method in ("pip", "fs"):
            names = ["prog.user.so" if self.method == "pip" else f"prog.user.{rank}.so" for rank in range(RANKS)]
            places = [(self.copy(rank), names[rank]) for rank in range(RANKS)]
        for start, name in places:
            if name:
                Path(folder, name).write_bytes(image)
            path = str(folder / name) if name else ""
            for at, protection in ((0, "r--"), (0x1000, "r-x"), (0x2000, "rw-")):
                found.append(Mapped(start + at, 0x1000, image[at : at + 0x1000], path, protection, at if name else 0))
        return found


class _Target(SparseTarget):
    def open_path(self, path: str) -> Optional[str]:
        return path
