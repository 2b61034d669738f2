"""SimGrid's library in a target's memory: what it exports, the words of many objects, and their classes by vtables.

Takes a target; gives `SimgridLibrary`, or None without SimGrid. An object's class comes from the run-time type
information that its vtable leads to, so that neither symbols of vtables nor debug information are needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Optional

from pieglobalsfind.elf.loaded import LoadedElf, loaded_at
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.memory_map import of_files
from pieglobalsfind.target import MemoryMapping, Target, read_many

NAME = "/libsimgrid.so"
LONGEST_CLASS = 128  # bytes of a mangled name
CLASS = re.compile(rb"N7simgrid[\w.]*E\0")
WORD = 8
Words = tuple[int, ...]
NOTHING: Words = ()


def words_of(target: Target, addresses: Sequence[int], most: int, least: int) -> list[Words]:
    """Of each object `most` words, or fewer where its mapping ends before, but `least`; () for what can't be read."""
    words = _read(target, addresses, most)
    lacking = [index for index, data in enumerate(words) if data is None]
    while lacking and most > least:
        most = max(most // 2, least)
        for index, again in zip(lacking, _read(target, [addresses[index] for index in lacking], most)):
            words[index] = again
        lacking = [index for index in lacking if words[index] is None]
    return [data or NOTHING for data in words]


def _read(target: Target, addresses: Sequence[int], count: int) -> list[Optional[Words]]:
    form = struct.Struct(f"<{count}Q")
    data = read_many(target, [(address, form.size) for address in addresses])
    return [None if piece is None else form.unpack(piece) for piece in data]


class SimgridLibrary:
    """libsimgrid as it is loaded."""

    def __init__(self, target: Target, elf: LoadedElf, path: str) -> None:
        self.elf = elf
        self.path = path
        self._target = target
        self._classes: dict[int, str] = {}
        self._end = elf.base + elf.span

    def symbol(self, name: str) -> int:
        """Where an exported variable is, 0 if it is not exported."""
        return self.elf.symbol(name) or 0

    def class_of(self, vtable: int) -> str:
        """The mangled name of the class that has this vtable, "" if it is not a vtable of the library's.

        The word before the address that objects hold leads to the type_info {vtable, name}.
        """
        if not self.elf.base < vtable < self._end or vtable % 8:
            return ""
        if vtable not in self._classes:
            self._classes[vtable] = self._name_at(vtable)
        return self._classes[vtable]

    def _name_at(self, vtable: int) -> str:
        try:
            _, information = struct.unpack("<qQ", self._target.read(vtable - 16, 16))
            if not self.elf.base < information < self._end or information % 8:
                return ""
            _, name = struct.unpack("<QQ", self._target.read(information, 16))
            if not self.elf.base < name < self._end:
                return ""
            match = CLASS.match(self._target.read(name, min(LONGEST_CLASS, self._end - name)))
        except MemoryUnreadable:
            return ""
        return match[0][:-1].decode() if match else ""


def find_library(target: Target, maps: Sequence[MemoryMapping]) -> Optional[SimgridLibrary]:
    """None if the target has no such library, or for a processor without a table."""
    for file in of_files(maps, NAME):
        if file.offset == 0 and file.readable:
            elf = loaded_at(target.read, file.start)
            if elf is not None and elf.header.machine in PROCESSORS and elf.is_relocated:
                return SimgridLibrary(target, elf, file.path)
    return None
