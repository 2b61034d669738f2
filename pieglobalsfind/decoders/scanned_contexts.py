"""Find the saved registers of suspended ranks of which only copies are known.

Takes a target that stands still; gives contexts that the runtime itself names. In a rank's stack many places look like
saved registers and lead to its main function, nearly all of them from calls that have returned. A word outside
of all stacks has the right place: the runtime keeps it there. What lies there returns to just after a call of the
function that switches. That function's code tells which registers it has pushed.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.running import stack_pointer
from pieglobalsfind.machine.processor import Layout, Processor
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.target import MemoryMapping, Target, pieces, read_many

MOST_SEARCHED = 16 << 20  # bytes of memory in use that are searched for words
MOST_SAVED = 128  # bytes of a context up to its return address
WORD = 8

RankOf = Callable[[int], Optional[int]]  # the index of the one rank whose code a stack returns to, by its stack pointer


@dataclass(frozen=True)
class NamedContext:
    """A saved context, and the runtime's word that names it."""

    context: int
    word: int
    layout: Layout


def suspended(
    target: Target, maps: Sequence[MemoryMapping], processor: Processor, rank_of: RankOf
) -> Mapping[int, NamedContext]:
    """By the index of a rank, its context, if only one is named, and of the form that most have."""
    named = list(_named(target, maps, processor))
    stacks = {_start(maps, claim.context) for claim in named}
    stacks.update(_start(maps, stack_pointer(thread, processor)) for thread in target.threads())
    claims: dict[int, set[NamedContext]] = {}
    for context in named:
        is_on_stack = _start(maps, context.word) in stacks or rank_of(context.word) is not None
        index = None if is_on_stack else rank_of(context.context)
        if index is not None:
            claims.setdefault(index, set()).add(context)
    places = Counter(_start(maps, claim.word) for several in claims.values() for claim in several)
    contexts: dict[int, NamedContext] = {}
    for index, several in claims.items():
        if len({claim.context for claim in several}) == 1:
            contexts[index] = max(several, key=lambda claim: places[_start(maps, claim.word)])
    layouts = Counter(claim.layout for claim in contexts.values()).most_common(1)
    return {index: claim for index, claim in contexts.items() if claim.layout == layouts[0][0]}


def _start(maps: Sequence[MemoryMapping], address: int) -> int:
    mapping = mapping_at(maps, address)
    return mapping.start if mapping is not None else 0


def _named(target: Target, maps: Sequence[MemoryMapping], processor: Processor) -> Iterator[NamedContext]:
    """The words that name something which looks like a context in another mapping."""
    layouts: dict[int, Optional[Layout]] = {}  # by return address
    words = list(_words(target, maps))
    read_many(target, [(word, WORD) for word, _ in words])  # noted by who plans a pause
    for (word, value), data in zip(words, read_many(target, [(value, MOST_SAVED) for _, value in words])):
        for at, pc in enumerate(struct.unpack(f"<{len(data or b'') // WORD}Q", data or b"")):
            if pc not in layouts:
                mapping = mapping_at(maps, pc)
                is_code = mapping is not None and mapping.executable
                layouts[pc] = processor.switch_layout(target.read, pc) if is_code else None
            layout = layouts[pc]
            if layout is not None and any(
                rule.dwarf_register == processor.pc and rule.offset == WORD * at for rule in layout
            ):
                yield NamedContext(value, word, layout)


def _words(target: Target, maps: Sequence[MemoryMapping]) -> Iterator[tuple[int, int]]:
    """(address, value) of words that name a place in writable memory of another mapping, as far as the search goes."""
    left = MOST_SEARCHED
    writable = [mapping for mapping in maps if mapping.readable and mapping.writable]
    anonymous = [mapping for mapping in writable if not mapping.path]
    low, high = (
        min((mapping.start for mapping in anonymous), default=0),
        max((mapping.end for mapping in anonymous), default=0),
    )
    for mapping in writable:
        for start, data in pieces(target, mapping.start, mapping.end):
            left -= len(data)
            if left < 0:
                return
            values = array("Q", data[: len(data) // WORD * WORD])
            for at, value in enumerate(values):
                if low <= value < high and value % WORD == 0 and not mapping.start <= value < mapping.end:
                    named = mapping_at(anonymous, value)
                    if named is not None:
                        yield start + WORD * at, value
