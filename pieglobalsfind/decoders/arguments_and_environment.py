"""Read a process's arguments and environment from the end of its first stack, and a digest unique to this start.

Takes a target; gives the values, also of a core file, which has no /proc/PID/environ. System V ABI (x86-64), "Initial
Stack and Register State": argc, arguments, 0, variables, 0, auxiliary vector. glibc's loader exports where that is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TypeVar

from pieglobalsfind.elf.loaded import exporters
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import MemoryMapping, Target, system_loaders, word_at

Value = TypeVar("Value")

BEGINNING = "__libc_stack_end"
MOST_WORDS = 1 << 14  # arguments and variables
MOST_ARGUMENTS = 64  # that are read
LONGEST = 1 << 12  # bytes of a name and its value
PIECE, PAGE = 64, 4096  # bytes
MOST_VECTOR = 64  # entries of the auxiliary vector
AT_NULL, AT_RANDOM = 0, 25


def variable(target: Target, maps: Sequence[MemoryMapping], name: str) -> str:
    """Its value, printable characters alone; "" if there is none, or if it can't be read."""
    return _at_beginning(target, maps, lambda beginning: _value(target, beginning, name), "")


def arguments(target: Target, maps: Sequence[MemoryMapping]) -> tuple[str, ...]:
    """The first words of the command that started the program, as file names; () if they can't be read."""
    return _at_beginning(target, maps, lambda beginning: _arguments(target, beginning), ())


def start(target: Target, maps: Sequence[MemoryMapping]) -> str:
    """A word that tells this start of a program from any other; "" if it can't be read.

    From random bytes of the kernel's (getauxval(3), AT_RANDOM). They guard the process's stacks: their digest is given.
    """
    return _at_beginning(target, maps, lambda beginning: _digest(target, beginning), "")


def _at_beginning(target: Target, maps: Sequence[MemoryMapping], read: Callable[[int], Value], nothing: Value) -> Value:
    """What is read from the first stack's beginning on; `nothing` if it can't be."""
    for _, place in exporters(target.read, system_loaders(maps), BEGINNING):
        with suppress(MemoryUnreadable):
            return read(word_at(target, place))
    return nothing


def _arguments(target: Target, beginning: int) -> tuple[str, ...]:
    """Those that the program has left: SimGrid takes its own out of the array, which a null pointer ends."""
    count = min(word_at(target, beginning), MOST_ARGUMENTS)
    places = (word_at(target, beginning + 8 + 8 * at) for at in range(count))
    left = takewhile(bool, places)
    return tuple(_bytes(target, place).decode("utf-8", "surrogateescape") for place in left)


def _value(target: Target, beginning: int, name: str) -> str:
    sought = name.encode() + b"="
    for at in _variables(target, beginning):
        address = word_at(target, at)
        if target.read(address, len(sought)) == sought:
            return _text(target, address + len(sought))
    return ""


def _variables(target: Target, beginning: int) -> range:
    """Where the variables' addresses are."""
    count = word_at(target, beginning)
    if count >= MOST_WORDS:
        return range(0)
    first = beginning + 8 * (count + 2)
    end = next((at for at in range(first, first + 8 * MOST_WORDS, 8) if not word_at(target, at)), first)
    return range(first, end, 8)


def _digest(target: Target, beginning: int) -> str:
    variables = _variables(target, beginning)
    for at in range(variables.stop + 8, variables.stop + 8 + 16 * MOST_VECTOR, 16):
        kind = word_at(target, at)
        if kind == AT_NULL:
            break
        if kind == AT_RANDOM:
            return hashlib.sha256(target.read(word_at(target, at + 8), 16)).hexdigest()[:16]
    return ""


def _text(target: Target, address: int) -> str:
    return "".join(
        character for character in _bytes(target, address).decode("utf-8", "replace") if character.isprintable()
    )


def _bytes(target: Target, address: int) -> bytes:
    """What lies there up to a zero; read in pieces of which none crosses a page's end, where the stack may end."""
    text = b""
    while len(text) < LONGEST:
        at = address + len(text)
        piece, zero, _ = target.read(at, min(PIECE, PAGE - at % PAGE)).partition(b"\0")
        text += piece
        if zero:
            break
    return text[:LONGEST]
