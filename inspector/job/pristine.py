"""What a variable holds before anything has written to it: the file's image, relocated for where a copy lies.

Takes an object and its file; compares bytes of a rank with that. A word whose relocation names another file's symbol is
left out of the comparison: the loader alone knows what it put there.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.dwarf.types import Variable
from pieglobalsfind.elf.file import PT_TLS, ElfFile
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Object

from ..program.program_file import ProgramFile

WORD = struct.Struct("<Q")
MASK = (1 << 64) - 1
PIECE = 1 << 20  # bytes that are compared at a time
MOST_KEPT = 1 << 16  # bytes of a piece that is not read anew for each rank
LARGEST = 1 << 28  # bytes of a variable that are compared at once


@dataclass(frozen=True)
class Relocated:
    """A word that the loader writes: `vaddr` of what it names in the same file, None for another's."""

    place: int
    vaddr: Optional[int]


class Pristine:
    """The image of one file. Raises `ObjectFileError` if it can't be read."""

    def __init__(self, path: str, elf_object: Object) -> None:
        self._object = elf_object
        self._elf = ElfFile(path)
        self._relocated = sorted(self._relocations(path), key=lambda relocation: relocation.place)
        self._places = [relocated.place for relocated in self._relocated]
        self._tls = next((header for header in self._elf.program_headers if header.type == PT_TLS), None)
        self._images: dict[tuple[int, int], bytes] = {}

    def _relocations(self, path: str) -> Iterator[Relocated]:
        with ProgramFile(path) as file:
            kinds = file.processor.relocations
            for relocation in file.relocations():
                if relocation.type == kinds.relative:
                    yield Relocated(relocation.offset, relocation.addend)
                elif relocation.type in (kinds.absolute, kinds.glob_dat):
                    symbol = file.symbol(relocation)
                    own = symbol.value + relocation.addend if symbol is not None and symbol.is_defined else None
                    yield Relocated(relocation.offset, own)

    def is_relocated(self, variable: Variable) -> bool:
        """Whether the loader writes to the variable, so that its first bytes depend on the place of the copy."""
        start = self._vaddr(variable)
        return start is not None and self._first_relocated(start, variable.size) is not None

    def _first_relocated(self, start: int, size: int) -> Optional[int]:
        first = bisect_left(self._places, start - WORD.size + 1)
        return first if first < len(self._places) and self._places[first] < start + size else None

    def is_unwritten(self, variable: Variable, data: memoryview, bias: int) -> Optional[bool]:
        """Whether `data`, which a rank has at `bias` plus the variable's vaddr, is the file's; None if unknown."""
        start = self._vaddr(variable)
        if start is None or not 0 < len(data) <= LARGEST:
            return None
        first = self._first_relocated(start, len(data))
        try:
            if first is not None:
                return self._relocated_image(start, self._image(start, len(data)), data, bias, first) == bytes(data)
            return all(
                self._image(start + at, min(PIECE, len(data) - at)) == bytes(data[at : at + PIECE])
                for at in range(0, len(data), PIECE)  # a view alone is compared byte by byte, a whole copy takes memory
            )
        except ObjectFileError:
            return None

    def _vaddr(self, variable: Variable) -> Optional[int]:
        if variable.tls_offset is not None:
            return self._tls.vaddr + variable.tls_offset if self._tls is not None else None
        return variable.address

    def _image(self, start: int, size: int) -> bytes:
        """What the file has of [start, start + size), which every rank is compared with."""
        image = self._images.get((start, size))
        if image is None:
            image = self._read_image(start, size)
            if size <= MOST_KEPT:
                self._images[start, size] = image
        return image

    def _read_image(self, start: int, size: int) -> bytes:
        if self._tls is not None and self._tls.vaddr <= start and start + size <= self._tls.end:
            held = max(0, min(size, self._tls.vaddr + self._tls.file_size - start))
            return self._elf.read(self._tls.offset + start - self._tls.vaddr, held) + bytes(size - held)
        return self._elf.at(start, size)

    def _relocated_image(self, start: int, image: bytes, data: memoryview, bias: int, first: int) -> bytes:
        changed = bytearray(image)
        for relocated in self._relocated[first:]:
            at = relocated.place - start
            if at >= len(image):
                break
            if at < 0 or at + WORD.size > len(image):
                continue
            word = data[at : at + WORD.size] if relocated.vaddr is None else WORD.pack((relocated.vaddr + bias) & MASK)
            changed[at : at + WORD.size] = word
        return bytes(changed)
