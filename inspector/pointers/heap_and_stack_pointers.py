"""What a rank has besides its copies: its stack and blocks of heaps, read for pointers into originals and other ranks.

Takes the originals and a rank's comparison. A word is called a pointer only if types say so; of any other that names
such a place the finding says that nothing describes it. What was not read is named, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, Optional, Union

from pieglobalsfind.decoders.registry.live_state import while_suspended
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import EXITED, RUNNING, STARTING, Absent, Rank, Region
from pieglobalsfind.target import backed

from ..job.rank_data import LARGEST_PIECE, RankData
from .comparison import Comparison, mangled_ground
from .findings import HEAP, LIBC_HEAP, STACK, PointerFinding, right_value, verdict_of
from .ground import MANGLED, UNTYPED, Ground
from .heap_blocks import Blocks, blocks_in
from .libc_heap_words import LibcWords
from .original_data import Originals
from .pointers_to_other_ranks import OtherRanks
from .stack_evidence import StackEvidence, StackVariables
from .typed_heap_objects import AllocatedRegion, Reached, Typed
from .words import WORD, Ranges, Word, is_past_end

PIECE = 4 << 20  # bytes that are read at once
MOST_WORDS = 100_000  # of one rank's heap, and of its stack
NOT_DESCRIBED = "nothing says what it is"


class StackWords(NamedTuple):
    """The words of a stack that begins at `start`, and what they are."""

    start: int
    words: list[Word]
    evidence: StackEvidence


class OwnMemory:
    """What all ranks have, one after the other; `unread` says which rank's memory was not read, and why."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals
        self._job = originals.job
        self._memory = RankData(self._job.target)
        job = self._job
        self._walker = job.walker
        self._variables = StackVariables(job, self._walker)
        self.others = OtherRanks(originals)
        self.libc = LibcWords(originals, self.others.images)
        self.unread: list[tuple[int, str]] = []

    def findings(self, comparison: Comparison) -> list[PointerFinding]:
        """What the rank's heap and stack have, and the blocks of libc's heap that its pointers lead to."""
        ranges = [span for span in comparison.ranges if not self._originals.is_owned(span[0])]
        rank = comparison.rank
        if (not ranges and self.others.images.is_empty) or rank.state in (STARTING, EXITED):
            return []
        heap = self._words_of_heap(comparison, rank.heap, ranges) if isinstance(rank.heap, Region) else []
        is_wanted = bool(heap or not self.libc.is_empty)
        stack = self._stack(comparison, ranges, is_wanted)
        pointer_findings = self._judged(comparison, heap, stack) if is_wanted else []
        if stack is not None:
            pointer_findings += [
                pointer_finding
                for word in stack.words
                for pointer_finding in self._finding(
                    comparison, STACK, stack.start, word, stack.evidence.ground(word.address)
                )
            ]
        return pointer_findings

    # ---- the words ----

    def _words_of_heap(self, comparison: Comparison, heap: Region, ranges: Ranges) -> list[Word]:
        words: list[Word] = []
        others, scanned = self.others.images, 0
        spans = (
            (start, min(start + PIECE, last))
            for first, last in backed(self._job.target, heap.start, heap.end)
            for start in range(first, last, PIECE)
        )
        for start, end in spans:
            try:
                data = self._job.target.read(start, min(end + WORD - 1, heap.end) - start)
            except MemoryUnreadable as error:
                self.unread.append((comparison.rank.rank, f"its heap can't be read to its end, {error.why}"))
                break
            words += (word for word in self._words(comparison, data, start, ranges) if word.address < end)
            words += others.words(comparison.rank.rank, data[: max(others.most_bytes - scanned, 0)], start)
            scanned += end - start
            if len(words) > MOST_WORDS:
                why = f"more than {MOST_WORDS} words of its heap name an original or lead into another rank"
                self.unread.append((comparison.rank.rank, why))
                break
        if scanned > others.most_bytes and not others.is_empty:
            why = f"only the first {others.most_bytes >> 10} KB of its heap were scanned for pointers into other ranks"
            self.unread.append((comparison.rank.rank, why))
        return words

    def _words(self, comparison: Comparison, data: bytes, start: int, ranges: Ranges) -> Iterator[Word]:
        for word in self._originals.words(data, start, ranges):
            if word.address not in comparison.in_blocks and (
                word.demangled is not None or not comparison.is_redirected(word.value)
            ):
                yield word

    def _stack(self, comparison: Comparison, ranges: Ranges, is_wanted: bool) -> Optional[StackWords]:
        """Its words that name an original; what its words are only if there are any, or if that `is_wanted`."""
        if isinstance(comparison.rank.stack, Absent):
            self._not_read(comparison.rank, comparison.rank.stack.reason)
            return None

        def read(now: Rank) -> Optional[StackWords]:
            return self._stack_now(comparison, now, ranges, is_wanted)

        try:
            return while_suspended(self._job.target, self._job.table, comparison.rank, read)[1]
        except RanklensError as error:
            self._not_read(comparison.rank, re.sub(f"^rank {comparison.rank.rank} ", "it ", error.sentence))
            return None

    def _not_read(self, rank: Rank, reason: str) -> None:
        self.unread.append((rank.rank, f"its stack was not read, {reason}"))

    def _stack_now(self, comparison: Comparison, now: Rank, ranges: Ranges, is_wanted: bool) -> Optional[StackWords]:
        """Of a rank that stands still: from its stack pointer to the end. What lies below is dead."""
        if not isinstance(now.stack, Region) or now.state in (STARTING, EXITED):
            return None
        registers = self._walker.registers_now(now)
        low = registers[self._job.table.processor.stack_pointer]
        size = now.stack.end - low
        if size > LARGEST_PIECE:
            self.unread.append(
                (now.rank, f"only {LARGEST_PIECE >> 20} MB of the {size >> 20} MB of its stack were read")
            )
        data = self._job.target.read(low, min(size, LARGEST_PIECE))
        words = list(islice(self._words(comparison, data, low, ranges), MOST_WORDS))
        words += islice(self.others.images.words(now.rank, data, low), MOST_WORDS)
        saved = self._saved(now)
        for register, place in saved.items():
            value = registers.get(register, 0)
            if (
                place < low
                and not comparison.is_redirected(value)
                and (
                    any(first <= value <= last for first, last in ranges)
                    or self.others.images.leads_away(now.rank, value)
                )
            ):
                words.append(Word(place, value))
        if not words and not is_wanted:
            return None
        frames, memory, ends = self._walker.frames_from(now.stack, registers)
        if ends:
            self.unread.append((now.rank, "not all frames of its stack are known"))
        return StackWords(now.stack.start, words, self._variables.of(frames, memory, saved))

    def _saved(self, rank: Rank) -> dict[int, int]:
        """Where a suspended rank has saved its registers, by DWARF number."""
        if rank.state == RUNNING or not isinstance(rank.context, int):
            return {}
        return {
            register_rule.dwarf_register: rank.context + register_rule.offset
            for register_rule in self._job.table.context_layout
            if register_rule.saved
        }

    # ---- what they are ----

    def _judged(self, comparison: Comparison, words: list[Word], stack: Optional[StackWords]) -> list[PointerFinding]:
        heap = comparison.rank.heap if isinstance(comparison.rank.heap, Region) else Region(0, 0)
        blocks, whole = self._blocks(heap), AllocatedRegion(heap.start, heap.size, False)

        def block_at(address: int) -> Optional[AllocatedRegion]:
            if address in heap:
                return blocks.at(address) if blocks is not None else whole
            return self.libc.block_at(address)

        kept = [word for word in words if is_whole_in(block_at(word.address), word.address)]
        if not kept and self.libc.is_empty:
            return []
        job = self._job
        self._memory.load(comparison.rank, job.privatized)
        originals = self._originals
        reached = Reached(originals.pointers, self._memory.read, block_at, job.translator.is_mapped, len(job.present))
        reached.follow((*self._roots(comparison), *(stack.evidence.variables if stack is not None else ())))
        if reached.is_cut:
            self.unread.append((comparison.rank.rank, "not all of its heap's blocks were typed, there are too many"))
        pointer_findings = [
            pointer_finding
            for word in kept
            for pointer_finding in self._finding(comparison, HEAP, heap.start, word, reached.ground(word.address))
        ]
        for block, word in self.libc.reached(comparison.rank.rank, reached):
            if not comparison.is_redirected(word.value):
                ground = reached.ground(word.address)
                pointer_findings += self._finding(comparison, LIBC_HEAP, block.start, word, ground)
        return pointer_findings

    def _finding(
        self, comparison: Comparison, place: str, start: int, word: Word, ground: Optional[Ground]
    ) -> Iterator[PointerFinding]:
        """What is to be said of a word of the rank's own, if anything."""
        if self.others.images.leads_away(comparison.rank.rank, word.value):
            yield from self.others.finding(comparison, place, start, word, ground or Ground(UNTYPED, NOT_DESCRIBED))
        elif comparison.names_original(word.place):
            yield from finding(comparison, place, start, word, ground)

    def _roots(self, comparison: Comparison) -> Iterator[Typed]:
        """The rank's own variables that hold pointers."""
        for root in self._originals.roots():
            address = comparison.moved(root.address)
            if address is not None:
                yield replace(root, address=address)

    def _blocks(self, heap: Region) -> Optional[Blocks]:
        try:
            return blocks_in(self._job.target.read, heap.start, heap.size)
        except MemoryUnreadable:
            return None


def finding(
    comparison: Comparison, place: str, start: int, word: Word, ground: Optional[Ground]
) -> Iterator[PointerFinding]:
    """What is to be said of a word of the rank's own that names an original, if anything."""
    ground = ground or Ground(UNTYPED, f"it points into the original, and {NOT_DESCRIBED}")
    right: Union[int, Absent]
    if word.demangled is not None:
        verdict: Optional[str] = MANGLED
        ground, right = mangled_ground(ground), comparison.mangled_right(word.demangled)
    else:
        verdict, right = verdict_of(ground, False), right_value(ground, word.value, comparison.moved(word.value))
    if verdict is not None:
        yield PointerFinding(
            rank=comparison.rank.rank,
            object=place,
            offset=word.address - start,
            address=word.address,
            verdict=verdict,
            ground=ground,
            old=word.value,
            new=word.value,
            right=right,
            rewritten=False,
            past_end=is_past_end(word.value, comparison.ranges),
            demangled=word.demangled,
        )


def is_whole_in(block: Optional[AllocatedRegion], address: int) -> bool:
    """Whether the word at an address is all in one block."""
    return block is not None and address + WORD <= block.end
