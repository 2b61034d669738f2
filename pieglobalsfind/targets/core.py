"""A core file, the kernel's or GDB's: what it holds itself, and what it leaves to the files that were mapped.

Takes a path, and optionally a file that a mapped path does not lead to any more. Bytes come from a mapped file only if
its build-id (or else its headers) equals what the core holds of it; what neither holds is unreadable, never zero.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Optional

from pieglobalsfind.elf.file import (
    ET_CORE,
    PT_LOAD,
    PT_NOTE,
    ElfFile,
    ProgramHeader,
    parse_program_headers,
)
from pieglobalsfind.elf.loaded import LoadedElf, build_id_in_maps
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError, RanklensError, TargetError, UsageError
from pieglobalsfind.machine.lookup import PROCESSORS, machine_name
from pieglobalsfind.ranges import place_of, range_at
from pieglobalsfind.target import KernelThread, MemoryMapping
from pieglobalsfind.targets import refuse_charm_checkpoint
from pieglobalsfind.targets.core_notes import SMALLEST_PAGE, FatalSignal, FileMapping, Notes, read_notes
from pieglobalsfind.targets.live import CHECKED_READ, LARGEST_READ, TOP, sparse_bytes
from pieglobalsfind.targets.procfs import is_file

COMPRESSIONS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"\x04\x22\x4d\x18": "lz4"}


class CoreTarget:
    """A core file. Raises `TargetError` if it is none or can't be read at all, `UsageError` if `exe` is not its."""

    def __init__(self, path: str, exe: Optional[str] = None) -> None:
        self.path = path
        self._elf = _open_core(path)
        self._headers = self._program_headers()
        self._loads = sorted(
            (header for header in self._headers if header.type == PT_LOAD), key=lambda header: header.vaddr
        )
        self._starts = [load.vaddr for load in self._loads]
        self._files: dict[str, Optional[ElfFile]] = {}
        self._identities: dict[str, Optional[bytes]] = {}
        self._moved: dict[str, str] = {}
        if exe is not None:
            self._moved[self._path_of(exe)] = exe

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return f"core file {Path(self.path).name}"

    @property
    def is_live(self) -> bool:
        """Return whether the target can change: a file can't."""
        return False

    def _program_headers(self) -> tuple[ProgramHeader, ...]:
        """All of them, or as many as a truncated file has."""
        try:
            program_headers = self._elf.program_headers
        except ObjectFileError:
            left = max(0, self._elf.size - self._elf.header.program_offset)
            program_headers = parse_program_headers(
                self._elf.read(min(self._elf.header.program_offset, self._elf.size), left), self._elf.header.order
            )
        if not program_headers:
            raise TargetError(f"{self.path} is truncated, it has no program headers", "write the core file again")
        return program_headers

    @cached_property
    def cut_short(self) -> str:
        """A sentence, if the file ends before all that its headers say is in it; "" if it is whole."""
        ends = [header.offset + header.file_size for header in self._headers if header.file_size]
        if len(self._headers) < self._elf.header.program_count:
            return f"{self.description} is cut short within its headers, {self._elf.size:,} bytes are there"
        if max(ends, default=0) <= self._elf.size:
            return ""
        lost = ", without the list of threads and mapped files" if self._notes_are_cut else ""
        return f"{self.description} is cut short, {self._elf.size:,} of {max(ends):,} bytes are there{lost}"

    @property
    def _notes_are_cut(self) -> bool:
        return any(
            header.type == PT_NOTE and header.offset + header.file_size > self._elf.size for header in self._headers
        )

    # ---- notes ----

    @cached_property
    def _notes(self) -> Notes:
        parts = (
            self._elf.read(header.offset, min(header.file_size, self._elf.size - header.offset))
            for header in self._headers
            if header.type == PT_NOTE and header.offset < self._elf.size
        )
        return read_notes(parts, self._elf.header.order, self._elf.header.machine)

    @cached_property
    def _mapped(self) -> list[FileMapping]:
        return sorted(self._notes.files, key=lambda mapping: mapping.start)

    def threads(self) -> Sequence[KernelThread]:
        """Every thread that the core file has registers of."""
        return self._notes.threads

    @property
    def signal(self) -> Optional[FatalSignal]:
        """The signal that a thread got when the core file was written, None if none did."""
        return self._notes.signal

    # ---- memory ----

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes, from the core file or else from the files that were mapped."""
        if address < 0 or size < 0 or address + size > TOP:
            raise MemoryUnreadable(address, size, "there are no such addresses")
        if size > LARGEST_READ:
            raise MemoryUnreadable(address, size, "that is more than can be read at once")
        if size > CHECKED_READ:
            return sparse_bytes(address, size, self.backed(address, address + size), self._read_whole)
        return self._read_whole(address, size)

    def _read_whole(self, address: int, size: int) -> bytes:
        parts, at = [], address
        while at < address + size:
            part = self._read_some(at, address + size - at, (address, size))
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def populated(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What the core file holds between two addresses, without the holes of a sparse file."""
        first = max(bisect_right(self._starts, start) - 1, 0)
        for load in islice(self._loads, first, bisect_left(self._starts, end)):
            low, high = max(start, load.vaddr), min(end, load.vaddr + load.file_size)
            bias = load.vaddr - load.offset
            for begin, stop in self._elf.data_ranges(low - bias, high - bias):
                yield begin + bias, stop + bias

    def backed(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield all between two addresses but the holes of a sparse file.

        What the core file does not hold is part of it: it may come from a mapped file.
        """
        at = start
        first = max(bisect_right(self._starts, start) - 1, 0)
        for load in islice(self._loads, first, bisect_left(self._starts, end)):
            held = max(0, min(load.file_size, self._elf.size - load.offset))
            low, high = max(at, load.vaddr), min(end, load.vaddr + held)
            if low >= high:
                continue
            if at < low:
                yield at, low
            bias = load.vaddr - load.offset
            for begin, stop in self._elf.data_ranges(low - bias, high - bias):
                yield begin + bias, stop + bias
            at = high
        if at < end:
            yield at, end

    def _read_some(self, address: int, size: int, whole: tuple[int, int]) -> bytes:
        """At least one byte from `address` on, or `MemoryUnreadable` for the whole read."""
        index = bisect_right(self._starts, address) - 1
        load = self._loads[index] if index >= 0 and address < self._loads[index].end else None
        if load is not None and address < load.vaddr + load.file_size:
            offset = load.offset + address - load.vaddr
            held = min(size, load.vaddr + load.file_size - address, self._elf.size - offset)
            if held <= 0:
                raise MemoryUnreadable(*whole, f"the core file is truncated before {address:#x}")
            return self._elf.read(offset, held)
        mapping = range_at(self._mapped, address)
        if mapping is None and load is not None and self._is_untouched_bss(load):
            return bytes(min(size, load.end - address))
        if mapping is None:
            raise MemoryUnreadable(*whole, self._why_not_held(load))
        next_load = self._starts[index + 1] if index + 1 < len(self._starts) else TOP
        return self._read_file(mapping, address, min(size, next_load - address, mapping.end - address), whole)

    def _why_not_held(self, load: Optional[ProgramHeader]) -> str:
        if load is not None:
            return "the core file does not hold it (see core(5), coredump_filter)"
        return "the core file is truncated before it says what is there" if self._notes_are_cut else "it is not mapped"

    def _is_untouched_bss(self, load: ProgramHeader) -> bool:
        """Whether a mapping that the kernel left out whole is zeros that the process never touched.

        The kernel leaves out anonymous memory that was never written; but also what coredump_filter or MADV_DONTDUMP
        exclude. Zeros are certain where the program headers of the object before it say so.
        """
        before = place_of(self._mapped, load.vaddr)
        if load.file_size or before < 0:
            return False
        base = self._base_of(self._mapped[before].path)
        try:
            loaded = LoadedElf(self.read, base) if base is not None else None
        except RanklensError:
            return False
        return loaded is not None and any(
            loaded.load_bias + segment.vaddr + segment.file_size <= load.vaddr
            and load.end <= self._page_end(loaded, segment)
            for segment in loaded.segments
        )

    def _base_of(self, path: str) -> Optional[int]:
        """Where a file's first byte is mapped."""
        return next((mapping.start for mapping in self._mapped if mapping.path == path and mapping.offset == 0), None)

    def _page_end(self, loaded: LoadedElf, segment: ProgramHeader) -> int:
        return self._rounded_up(loaded.load_bias + segment.end)

    def _rounded_up(self, end: int) -> int:
        """To whole pages."""
        return -(-end // self._notes.page) * self._notes.page

    def _read_file(self, mapping: FileMapping, address: int, size: int, whole: tuple[int, int]) -> bytes:
        file = self._verified(mapping.path)
        if file is None:
            raise MemoryUnreadable(*whole, f"the core file does not hold it, nor is {mapping.path} what was mapped")
        offset = mapping.offset + address - mapping.start
        held = min(size, file.size - offset)
        if held > 0:
            return file.read(offset, held)
        if offset < self._rounded_up(file.size):  # the rest of a file's last page is zeros
            return bytes(min(size, self._rounded_up(file.size) - offset))
        raise MemoryUnreadable(*whole, f"it is mapped beyond the end of {mapping.path}")

    def _verified(self, path: str) -> Optional[ElfFile]:
        """The file that was mapped as `path`, if it is the same one still."""
        if path not in self._files:
            self._files[path] = None  # what comparing reads must come from the core file itself
            self._files[path] = self._compared(path)
        return self._files[path]

    def _compared(self, path: str) -> Optional[ElfFile]:
        place = self.open_path(path)
        base = self._base_of(path)
        if place is None or base is None:
            return None
        try:
            file = ElfFile(place)
            head = min(file.size, file.header.program_offset + 56 * len(file.program_headers))
            same = self.read(base, head) == file.read(0, head)
            return file if same and self.file_identity(path) == (file.build_id or None) else None
        except RanklensError:
            return None

    # ---- mappings and files ----

    @cached_property
    def _maps(self) -> list[MemoryMapping]:
        mappings = [self._load_mapping(load) for load in self._loads if load.memory_size]
        mappings += [self._file_mapping(mapping) for mapping in self._mapped if not self._is_loaded(mapping)]
        return sorted(mappings, key=lambda mapping: mapping.start)

    def maps(self) -> Sequence[MemoryMapping]:
        """PT_LOADs under the names that NT_FILE gives them, and files that only NT_FILE knows.

        Protections are the core file's: GDB's gcore marks everything readable, guard pages too.
        """
        return self._maps

    def _load_mapping(self, load: ProgramHeader) -> MemoryMapping:
        named = range_at(self._mapped, load.vaddr)
        return MemoryMapping(
            load.vaddr,
            min(load.end, TOP),
            bool(load.flags & 4),
            bool(load.flags & 2),
            bool(load.flags & 1),
            named.offset + load.vaddr - named.start if named else 0,
            named.path if named else "",
        )

    def _is_loaded(self, mapping: FileMapping) -> bool:
        index = bisect_right(self._starts, mapping.start) - 1
        return index >= 0 and mapping.start < self._loads[index].end

    def _file_mapping(self, mapping: FileMapping) -> MemoryMapping:
        """GDB's gcore leaves out what the file holds; its program headers then tell the protection."""
        file = self._verified(mapping.path)
        flags = 4
        for program_header in file.segments if file else ():
            if (
                program_header.offset & -SMALLEST_PAGE
                <= mapping.offset
                < program_header.offset + max(program_header.file_size, 1)
            ):
                flags = program_header.flags
        return MemoryMapping(
            mapping.start,
            mapping.end,
            bool(flags & 4),
            bool(flags & 2),
            bool(flags & 1),
            mapping.offset,
            mapping.path,
        )

    def open_path(self, path: str) -> Optional[str]:
        """The file at the same path on this machine, or the one that the user gave for it."""
        place = self._moved.get(path, path)
        return place if is_file(place) else None

    def file_identity(self, path: str) -> Optional[bytes]:
        """The build-id that the core file itself holds of `path`."""
        if path not in self._identities:
            self._identities[path] = build_id_in_maps(self._load_maps, path, self.read)
        return self._identities[path]

    @cached_property
    def _load_maps(self) -> list[MemoryMapping]:
        return [self._load_mapping(load) for load in self._loads if load.memory_size]

    def _path_of(self, exe: str) -> str:
        """Which mapped path the user's file stands for: by build-id, or by name for files that have none."""
        with ElfFile(exe) as file:
            build_id = file.build_id
        paths = list(dict.fromkeys(file_mapping.path for file_mapping in self._mapped))
        if build_id:
            same = [path for path in paths if self.file_identity(path) == build_id]
        else:
            same = [path for path in paths if Path(path).name == Path(exe).name]
        if same:
            return same[0]
        mapped = next((path for path in paths if Path(path).name == Path(exe).name), None)
        theirs = self.file_identity(mapped) if mapped else None
        if theirs and mapped:
            sentence = f"{exe} has build-id {build_id.hex() or '(none)'}, the core file was made of {mapped}"
            raise UsageError(f"{sentence} with build-id {theirs.hex()}", "give the very file that ran")
        raise UsageError(f"{exe} was not mapped in {self.path}", "give the program that ran, or leave --exe out")


def _open_core(path: str) -> ElfFile:
    try:
        elf = ElfFile(path)
    except ObjectFileError as error:
        refuse_charm_checkpoint.check_is_none(path)
        raise TargetError(error.sentence, error.hint or _compression_hint(path)) from error
    if elf.header.type != ET_CORE:
        raise TargetError(f"{path} is not a core file", "it is a program or library; a core file is made by gcore PID")
    if elf.header.machine not in PROCESSORS or elf.header.order != "<":
        raise TargetError(f"{path} is of a program for {machine_name(elf.header.machine)}, which can't be read")
    return elf


def _compression_hint(path: str) -> str:
    if not is_file(path):
        return ""
    try:
        with open(path, "rb") as file:
            start = file.read(6)
    except OSError:
        return ""
    for magic, name in COMPRESSIONS.items():
        if start.startswith(magic):
            return f"it is compressed with {name}; expand it first (coredumpctl dump does that for systemd's)"
    return ""
