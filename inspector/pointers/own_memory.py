"""What a rank has besides its copies: its stack and blocks of heaps, looked through for pointers into the originals.

Takes the originals and a rank's comparison. A word is called a pointer only if types say so; of any other that names
an original place it is said that nothing describes it. What was not looked through is said, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, Optional, Union

from pieglobalsfind.decoders.registry.live_state import while_suspended
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import EXITED, RSP, RUNNING, STARTING, Absent, Rank, Region
from pieglobalsfind.stacks.unwind import Walker

from ..job.memory import LARGEST_PIECE, RankMemory
from .comparison import Comparison, mangled_ground
from .evidence import MANGLED, UNTYPED, Ground
from .findings import HEAP, LIBC_HEAP, STACK, Finding, right_value, verdict_of
from .heap_blocks import Blocks, blocks_in
from .libc_words import LibcWords
from .originals import Originals
from .reach import Block, Reached, Typed
from .stack_variables import StackEvidence, StackVariables
from .words import WORD, Ranges, Word, is_past_end

PIECE = 4 << 20  # bytes that are looked through at once
MOST_WORDS = 100_000  # of one rank's heap, and of its stack


class Stack(NamedTuple):
    """The words of a stack that begins at `start`, and what they are."""

    start: int
    words: list[Word]
    evidence: StackEvidence


class OwnMemory:
    """What all ranks have, one after the other; `unread` says of whom what was not looked through, and why."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals
        self._job = originals.job
        self._memory = RankMemory(self._job.target)
        job = self._job
        self._walker = Walker(job.target, job.table, job.translator, job.contexts, job.symbolizer)
        self._variables = StackVariables(job, self._walker)
        self.libc = LibcWords(originals)
        self.unread: list[tuple[int, str]] = []

    def findings(self, found: Comparison) -> list[Finding]:
        """What the rank's heap and stack have, and the blocks of libc's heap that its pointers lead to."""
        ranges = [one for one in found.ranges if not self._originals.is_owned(one[0])]
        rank = found.rank
        if not ranges or rank.state in (STARTING, EXITED):
            return []
        heap = self._words_of_heap(found, rank.heap, ranges) if isinstance(rank.heap, Region) else []
        is_wanted = bool(heap or self.libc.words)
        stack = self._stack(found, ranges, is_wanted)
        told = self._judged(found, heap, stack) if is_wanted else []
        if stack is not None:
            told += [
                one
                for word in stack.words
                for one in finding(found, STACK, stack.start, word, stack.evidence.ground(word.address))
            ]
        return told

    # ---- the words ----

    def _words_of_heap(self, found: Comparison, heap: Region, ranges: Ranges) -> list[Word]:
        words: list[Word] = []
        for start in range(heap.start, heap.end, PIECE):
            try:
                data = self._job.target.read(start, min(PIECE + WORD - 1, heap.end - start))
            except MemoryUnreadable as error:
                self.unread.append((found.rank.rank, f"its heap can't be read to its end, {error.why}"))
                break
            words += (one for one in self._words(found, data, start, ranges) if one.address < start + PIECE)
            if len(words) > MOST_WORDS:
                self.unread.append((found.rank.rank, f"more than {MOST_WORDS} words of its heap name an original"))
                break
        return words

    def _words(self, found: Comparison, data: bytes, start: int, ranges: Ranges) -> Iterator[Word]:
        for one in self._originals.words(data, start, ranges):
            if one.address not in found.in_blocks and (one.demangled is not None or not found.is_redirected(one.value)):
                yield one

    def _stack(self, found: Comparison, ranges: Ranges, is_wanted: bool) -> Optional[Stack]:
        """Its words that name an original; what its words are only if there are any, or if that `is_wanted`."""
        if isinstance(found.rank.stack, Absent):
            self._not_read(found.rank, found.rank.stack.reason)
            return None

        def read(now: Rank) -> Optional[Stack]:
            return self._stack_now(found, now, ranges, is_wanted)

        try:
            return while_suspended(self._job.target, self._job.table, found.rank, read)[1]
        except RanklensError as error:
            self._not_read(found.rank, re.sub(f"^rank {found.rank.rank} ", "it ", error.sentence))
            return None

    def _not_read(self, rank: Rank, reason: str) -> None:
        self.unread.append((rank.rank, f"its stack was not looked through, {reason}"))

    def _stack_now(self, found: Comparison, now: Rank, ranges: Ranges, is_wanted: bool) -> Optional[Stack]:
        """Of a rank that stands still: from its stack pointer to the end. What lies below is dead."""
        if not isinstance(now.stack, Region) or now.state in (STARTING, EXITED):
            return None
        registers = self._walker.registers_now(now)
        low = registers[RSP]
        size = now.stack.end - low
        if size > LARGEST_PIECE:
            self.unread.append(
                (now.rank, f"only {LARGEST_PIECE >> 20} MB of the {size >> 20} MB of its stack were read")
            )
        data = self._job.target.read(low, min(size, LARGEST_PIECE))
        words = list(islice(self._words(found, data, low, ranges), MOST_WORDS))
        saved = self._saved(now)
        for register, place in saved.items():
            value = registers.get(register, 0)
            if place < low and any(first <= value <= last for first, last in ranges) and not found.is_redirected(value):
                words.append(Word(place, value))
        if not words and not is_wanted:
            return None
        frames, memory, ends = self._walker.frames_from(now.stack, registers)
        if ends:
            self.unread.append((now.rank, "not all frames of its stack are known"))
        return Stack(now.stack.start, words, self._variables.of(frames, memory, saved))

    def _saved(self, rank: Rank) -> dict[int, int]:
        """Where a suspended rank has saved its registers, by DWARF number."""
        if rank.state == RUNNING or not isinstance(rank.context, int):
            return {}
        return {one.dwarf_register: rank.context + one.offset for one in self._job.table.context_layout if one.saved}

    # ---- what they are ----

    def _judged(self, found: Comparison, words: list[Word], stack: Optional[Stack]) -> list[Finding]:
        heap = found.rank.heap if isinstance(found.rank.heap, Region) else Region(0, 0)
        blocks, whole = self._blocks(heap), Block(heap.start, heap.size, False)
        if heap.size > LARGEST_PIECE:
            what = f"where the blocks of its heap are is not known, it has more than {LARGEST_PIECE >> 20} MB"
            self.unread.append((found.rank.rank, what))

        def block_at(address: int) -> Optional[Block]:
            if address in heap:
                return blocks.at(address) if blocks is not None else whole
            return self.libc.block_at(address)

        kept = [one for one in words if is_whole_in(block_at(one.address), one.address)]
        if not kept and not self.libc.words:
            return []
        self._memory.load(found.rank, self._job.privatized)
        known = self._originals
        reached = Reached(known.pointers, self._memory.read, block_at, known.is_address, len(self._job.present))
        reached.follow((*self._roots(found), *(stack.evidence.variables if stack is not None else ())))
        if reached.is_cut:
            self.unread.append((found.rank.rank, "not all of its heap's blocks were told by types, there are too many"))
        told = [one for word in kept for one in finding(found, HEAP, heap.start, word, reached.ground(word.address))]
        for block, word in self.libc.reached(found.rank.rank, reached):
            if not found.is_redirected(word.value) and found.names_original(word.place):
                told += finding(found, LIBC_HEAP, block.start, word, reached.ground(word.address))
        return told

    def _roots(self, found: Comparison) -> Iterator[Typed]:
        """The rank's own variables that hold pointers."""
        for one in self._originals.roots():
            address = found.moved(one.address)
            if address is not None:
                yield replace(one, address=address)

    def _blocks(self, heap: Region) -> Optional[Blocks]:
        if not 0 < heap.size <= LARGEST_PIECE:
            return None
        try:
            return blocks_in(self._job.target.read(heap.start, heap.size), heap.start)
        except MemoryUnreadable:
            return None


def finding(found: Comparison, place: str, start: int, word: Word, ground: Optional[Ground]) -> Iterator[Finding]:
    """What is to be said of a word of the rank's own, if anything."""
    ground = ground or Ground(UNTYPED, "it points into the original, and nothing says what it is")
    right: Union[int, Absent]
    if word.demangled is not None:
        verdict: Optional[str] = MANGLED
        ground, right = mangled_ground(ground), found.mangled_right(word.demangled)
    else:
        verdict, right = verdict_of(ground, False), right_value(ground, word.value, found.moved(word.value))
    if verdict is not None:
        yield Finding(
            rank=found.rank.rank,
            object=place,
            offset=word.address - start,
            address=word.address,
            verdict=verdict,
            ground=ground,
            old=word.value,
            new=word.value,
            right=right,
            rewritten=False,
            past_end=is_past_end(word.value, found.ranges),
            demangled=word.demangled,
        )


def is_whole_in(block: Optional[Block], address: int) -> bool:
    """Whether the word at an address is all in one block."""
    return block is not None and address + WORD <= block.end
