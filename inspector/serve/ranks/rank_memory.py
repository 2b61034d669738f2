"""Show a rank's memory as a process's: a variable that lives elsewhere is read at its address in the rank's copy.

Takes a process's view and one of its ranks; reads, and writes where that is allowed. A debugger reads a variable where
the rank's copy of the object has it; where a placement says that it lives elsewhere, these bytes are read instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pieglobalsfind.elf.file import PF_W, ElfFile
from pieglobalsfind.errors import MemoryUnreadable, RanklensError, UsageError
from pieglobalsfind.model import RUNNING, Absent, Rank, Rebase, Redirect, Unplaced
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.target import Target
from pieglobalsfind.targets import in_address_space
from pieglobalsfind.targets.live import LiveTarget

PAGE = 4096
TOP = 1 << 64
NOWHERE = -1
OWN_KINDS = ("data", "heap", "stack", "tls")  # of addresses that may be written
HELD_BY_FILES = ("code", "rodata", "original", "shared", "runtime")


@dataclass(frozen=True)
class MemoryPart:
    """[start, end) of what the debugger sees is [storage, ...) of the process; `NOWHERE`: its place is not known."""

    start: int
    end: int
    storage: int


class ServedMemory:
    """The memory of one rank at one moment."""

    def __init__(self, view: ProcessView, rank: Rank) -> None:
        self._view = view
        self._rank = rank

    def read(self, address: int, size: int) -> bytes:
        """As many bytes from `address` on as can be had, at most `size`; b"" if the first one can't be."""
        content = bytearray()
        for start, count in self._pieces(address, size):
            data = self._available(start, count)
            content += data
            if len(data) < count:
                break
        return bytes(content)

    def write(self, address: int, data: bytes) -> None:
        """Raises `RanklensError` with the reason unless all of it is the suspended rank's own writable memory."""
        rank = self._rank.rank
        if self._rank.state == RUNNING:
            raise UsageError(f"rank {rank} runs: its memory is not written", "write to a suspended rank")
        target = self._target
        if not isinstance(target, LiveTarget):
            raise UsageError("a file's memory is not written", "write to a running job")
        pieces = list(self._pieces(address, len(data)))
        for start, count in pieces:
            for each in (start, start + count - 1):
                owner = self._view.translator.owner(each)
                mapping = self._view.translator.mapping(each)
                if owner.rank != rank or owner.kind not in OWN_KINDS or mapping is None or not mapping.writable:
                    raise UsageError(f"{each:#x} is not rank {rank}'s own data", "only a rank's own data is written")
        done = 0
        for start, count in pieces:
            _write(target.pid, start, data[done : done + count])
            done += count

    def place(self, address: int) -> int:
        """Where the process has what the debugger sees at `address`; `NOWHERE` if that is not known."""
        return next(iter(self._pieces(address, 1)))[0]

    # ---- where it is ----

    @cached_property
    def _target(self) -> Target:
        """Raises `RanklensError` if the rank's pages can't be read here."""
        target = in_address_space(self._view.target, self._rank.pages_of)
        if isinstance(target, Absent):
            raise RanklensError(f"the memory of rank {self._rank.rank} can't be read, {target.reason}", target.hint)
        return target

    @cached_property
    def _parts(self) -> list[MemoryPart]:
        """What lives elsewhere, ascending; of several that cover a place the first placement wins."""
        memory_parts: list[MemoryPart] = []
        for placement in self._rank.placements:
            if not isinstance(placement, (Redirect, Unplaced)) or placement.size <= 0:
                continue
            start = self._seen_at(placement.object, placement.original)
            storage = placement.storage if isinstance(placement, Redirect) else NOWHERE
            if storage != start:
                memory_parts += self._uncovered(
                    MemoryPart(start, min(start + placement.size, TOP), storage), memory_parts
                )
        return sorted(memory_parts, key=lambda part: part.start)

    @staticmethod
    def _uncovered(part: MemoryPart, others: list[MemoryPart]) -> Iterator[MemoryPart]:
        """What of a part no other one has."""
        at = part.start
        for other in sorted(others, key=lambda other: other.start):
            if other.end <= at or other.start >= part.end:
                continue
            if at < other.start:
                yield MemoryPart(at, other.start, _advanced(part, at))
            at = max(at, other.end)
        if at < part.end:
            yield MemoryPart(at, part.end, _advanced(part, at))

    def _seen_at(self, index: int, original: int) -> int:
        """Where the rank's copy of an object has what the original has at an address."""
        for placement in self._rank.placements:
            if (
                isinstance(placement, Rebase)
                and placement.object == index
                and 0 <= original - placement.original < placement.size
            ):
                return placement.copy + original - placement.original
        return original

    @cached_property
    def _starts(self) -> list[int]:
        return [part.start for part in self._parts]

    def _pieces(self, address: int, size: int) -> Iterator[tuple[int, int]]:
        """(address in the process or `NOWHERE`, size) of a range, in its order."""
        at, end = address, min(address + size, TOP)
        while at < end:
            index = bisect_right(self._starts, at) - 1
            if index >= 0 and at < self._parts[index].end:
                part = self._parts[index]
                stop = min(part.end, end)
                yield _advanced(part, at), stop - at
            else:
                stop = min(self._starts[index + 1] if index + 1 < len(self._starts) else end, end)
                yield at, stop - at
            at = stop

    # ---- reading ----

    def _available(self, address: int, size: int) -> bytes:
        """The beginning of a range that can be read, down to pages."""
        if address == NOWHERE:
            return b""
        try:
            return self._target.read(address, size)
        except MemoryUnreadable:
            return b"".join(self._pages(address, size))

    def _pages(self, address: int, size: int) -> Iterator[bytes]:
        at = address
        while at < address + size:
            count = min(PAGE - at % PAGE, address + size - at)
            try:
                yield self._target.read(at, count)
            except MemoryUnreadable:
                data = self._of_file(at, count)
                yield data
                if len(data) < count:
                    return
            at += count

    def _of_file(self, address: int, size: int) -> bytes:
        """What a snapshot leaves to the files: code and constants, of the very file that was loaded."""
        if isinstance(self._view.target, LiveTarget):
            return b""
        owner = self._view.translator.owner(address)
        mapping = self._view.translator.mapping(address)
        if owner.kind not in HELD_BY_FILES or (mapping is not None and mapping.writable and owner.kind != "code"):
            return b""
        place = self._view.symbolizer.place_in_file(owner)
        if isinstance(place, Absent):
            return b""
        try:
            with ElfFile(place[0]) as file:
                held = (
                    segment
                    for segment in file.segments
                    if segment.vaddr <= place[1] < segment.vaddr + segment.file_size
                )
                segment = next((program_header for program_header in held if not program_header.flags & PF_W), None)
                if segment is None:
                    return b""
                return file.at(place[1], min(size, segment.vaddr + segment.file_size - place[1]))
        except RanklensError:
            return b""


def _advanced(part: MemoryPart, address: int) -> int:
    return part.storage if part.storage == NOWHERE else part.storage + address - part.start


def _write(pid: int, address: int, data: bytes) -> None:
    """By the process's memory file: the kernel holds no stopped process's memory back from its tracer."""
    try:
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
            file.seek(address)
            if file.write(data) != len(data):
                raise RanklensError(f"{address:#x} could not be written whole", "read it again")
    except (OSError, OverflowError, ValueError) as error:
        raise RanklensError(f"{address:#x} can't be written, {error}") from error
