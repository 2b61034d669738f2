"""Find the copies of the program that SMPI makes (`smpi/privatization:dlopen`), and the rank of each.

Takes the system loader's list; gives the copies with their numbers, and for each stack the copy that it runs. SMPI
copies the program's file, and the libraries that `smpi/privatize-libs` names, loads each copy, and deletes it.
A copy's number is counted as actors begin to run: most often the rank's, but the rank's stack decides.
"""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders import link_maps
from pieglobalsfind.elf.file import PF_X
from pieglobalsfind.elf.loaded import LoadedElf, loaded_at
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Region
from pieglobalsfind.target import MemoryMapping, Target, read_many, read_or_none

PROGRAM = re.compile(r"_\d+_(\d{1,9})\.so$")  # TMPDIR/PROGRAM_PID_NUMBER.so
LIBRARY = re.compile(r"/(\d{7})[^/]*$")  # TMPDIR/: the library's name, its beginning replaced by the number
PAGE = 4096
LONGEST_NAME = 1024
MAINS = ("main", "user_main_")  # what SMPI calls: of C and C++, and of Fortran as smpif90 renames it
OUTERMOST = (1 << 12, 1 << 14, 1 << 16)  # bytes of a stack that are searched for its first call


@dataclass(frozen=True)
class Loaded:
    """An object in the loader's list: its entry there, its first address, its file's name, its headers."""

    entry: int
    base: int
    name: str
    elf: LoadedElf

    @property
    def code(self) -> Region:
        """From the first to the last byte of its code."""
        bias = self.base - self.elf.low
        parts = [(bias + segment.vaddr, bias + segment.end) for segment in self.elf.segments if segment.flags & PF_X]
        start, end = min((part[0] for part in parts), default=0), max((part[1] for part in parts), default=0)
        return Region(start, end - start)


@dataclass(frozen=True)
class Copies:
    """By number: the copies of programs, and of libraries."""

    programs: Mapping[int, Loaded]
    libraries: Mapping[int, tuple[Loaded, ...]]


def entries(target: Target, maps: Sequence[MemoryMapping]) -> list[tuple[int, int, str]]:
    """(entry, load bias, name) of all objects that the loader has loaded, in its order; [] if it does not say."""
    for debug in link_maps.debugs(target, maps):
        with suppress(MemoryUnreadable):
            return _named(target, next(link_maps.namespaces(target, debug), 0), len(maps))
    return []


def _named(target: Target, first: int, most: int) -> list[tuple[int, int, str]]:
    """The list from its first entry to its end, or to where it is damaged: each object has a mapping at least."""
    listed: dict[int, tuple[int, int]] = {}  # (bias, name's address) by entry
    address = first
    while address and address not in listed and len(listed) < most:
        bias, name, _, following, _ = struct.unpack("<5Q", target.read(address, 40))
        listed[address] = bias, name
        address = following
    names = read_many(target, [(name, LONGEST_NAME) for _, name in listed.values()])
    return [
        (entry, bias, _text(target, name, data or b"").decode("utf-8", "surrogateescape"))
        for (entry, (bias, name)), data in zip(listed.items(), names)
    ]


def _text(target: Target, address: int, data: bytes) -> bytes:
    """A name that ends too near to the end of its mapping is read again, to the end of its page."""
    if not data and address:
        data = read_or_none(target, address, PAGE - address % PAGE) or b""
    return data.partition(b"\0")[0]


def copies(target: Target, listed: Sequence[tuple[int, int, str]]) -> Copies:
    """What has the names that SMPI gives."""
    programs, libraries = dict[int, Loaded](), dict[int, tuple[Loaded, ...]]()
    named = [(library_row, PROGRAM.search(library_row[2]), LIBRARY.search(library_row[2])) for library_row in listed]
    ours = [(row, program, library) for row, program, library in named if program or library]
    for (_, program, library), loaded in zip(ours, _loaded(target, [row for row, _, _ in ours])):
        if program is not None and loaded is not None:
            programs.setdefault(int(program[1]), loaded)
        elif library is not None and loaded is not None:
            libraries[int(library[1])] = (*libraries.get(int(library[1]), ()), loaded)
    return Copies(programs, libraries)


def _loaded(target: Target, listed: Sequence[tuple[int, int, str]]) -> Iterator[Optional[Loaded]]:
    """Objects whose first pages are equal have equal headers, which are read once."""
    headers = dict[bytes, LoadedElf]()
    pages = read_many(target, [(bias, PAGE) for _, bias, _ in listed])
    for (entry, bias, name), page in zip(listed, pages):
        elf = headers.get(page) if page is not None else None
        if elf is None and page is not None:
            elf = loaded_at(target.read, bias)
            if elf is not None:
                headers[page] = elf
        yield Loaded(entry, bias, name, elf) if elf is not None and elf.segments else None


def programs_without_copies(target: Target, listed: Sequence[tuple[int, int, str]]) -> list[Loaded]:
    """Objects with a main that SMPI can call, without the program that the kernel has started."""
    loaded = []
    for entry, bias, name in listed[1:]:
        elf = loaded_at(target.read, bias) if name else None
        if elf is not None and any(elf.symbol(main) is not None for main in MAINS):
            loaded.append(Loaded(entry, bias, name, elf))
    return loaded


def entered(target: Target, stacks: Mapping[int, Region], codes: Mapping[int, Region]) -> dict[int, int]:
    """By stack, the key of the code that its outermost call into any is in."""
    order = sorted(codes, key=lambda key: codes[key].start)
    starts, ends = [codes[key].start for key in order], [codes[key].end for key in order]
    place_of: dict[int, int] = {}
    for size in OUTERMOST:
        left = [(key, stack) for key, stack in stacks.items() if key not in place_of and codes]
        places = [(stack.end - min(size, stack.size), min(size, stack.size) & -8) for _, stack in left]
        for (key, _), data in zip(left, read_many(target, places)):
            at = _outermost(data or b"", starts, ends)
            if at >= 0:
                place_of[key] = order[at]
    return place_of


def _outermost(data: bytes, starts: Sequence[int], ends: Sequence[int]) -> int:
    """Which of the ranges the last word in any of them is in, -1 if none is."""
    low, high = starts[0], ends[-1]
    for word in reversed(array("Q", data)):
        if low <= word < high:
            at = bisect_right(starts, word) - 1
            if word < ends[at]:
                return at
    return -1
