"""A variable of the environment that a program was started with, as it lies at the end of its first stack.

Takes a target; gives the value, also of a core file, which has no /proc/PID/environ. System V ABI (x86-64), "Initial
Stack and Register State": argc, arguments, 0, variables, 0. glibc's loader exports where that is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import PurePath

from pieglobalsfind.elf_memory import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.target import MemoryMapping, Target

BEGINNING = "__libc_stack_end"
MOST_WORDS = 1 << 14  # arguments and variables
LONGEST = 1 << 12  # bytes of a name and its value


def variable(target: Target, maps: Sequence[MemoryMapping], name: str) -> str:
    """Its value, printable characters alone; "" if there is none, or if it can't be read."""
    for one in maps:
        if one.offset == 0 and one.readable and PurePath(one.path).name.startswith("ld-"):
            try:
                place = LoadedElf(target.read, one.start).symbol(BEGINNING)
                if place is not None:
                    return _value(target, _word(target, place), name)
            except (ObjectFileError, MemoryUnreadable, struct.error):
                continue
    return ""


def _value(target: Target, beginning: int, name: str) -> str:
    count = _word(target, beginning)
    at = beginning + 8 * (count + 2)
    sought = name.encode() + b"="
    for index in range(MOST_WORDS if count < MOST_WORDS else 0):
        address = _word(target, at + 8 * index)
        if not address:
            break
        if target.read(address, len(sought)) == sought:
            return _text(target, address + len(sought))
    return ""


def _text(target: Target, address: int) -> str:
    found = b""
    while len(found) < LONGEST and (byte := target.read(address + len(found), 1)) != b"\0":
        found += byte
    return "".join(one for one in found.decode("utf-8", "replace") if one.isprintable())


def _word(target: Target, address: int) -> int:
    found: int = struct.unpack("<Q", target.read(address, 8))[0]
    return found
