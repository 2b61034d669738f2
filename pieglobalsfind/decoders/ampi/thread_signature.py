"""The signature by which a thread of stock AMPI is found in memory: an fcontext or ucontext_t with the words around it.

Takes a loader; gives the words that have the form of the processor's threads, and where the registers are saved.
Sources: Charm++'s src/conv-core/threads.C (struct CthThreadStruct, CthCreateInner), its conv-mach.h of
netlrts-linux-x86_64 and -arm8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from pieglobalsfind.decoders.ampi.runtime_variables import Loader
from pieglobalsfind.machine.processor import Layout, Processor
from pieglobalsfind.model import Region
from pieglobalsfind.target import Target, word_at

WORDS = struct.Struct("<QQQQQ")
ENTRY = 8  # bytes before the entry in it
BUCKET = 24  # bits of an address that several functions do not have in common
PAGE = 4096
TOP, LARGEST_TEXT = 1 << 64, 1 << 32  # a damaged header may name any addresses; linkers' code has at most 2 GiB


@dataclass(frozen=True)
class Signature:
    """A thread's words at `address` and what they name; not yet known to be a thread. No `entry` is 0."""

    address: int
    context: int
    entry: int
    stack: Region


@dataclass(frozen=True)
class Form:
    """{context, entry, end of stack, flags, size}. Of a loader without symbols the entry may be any function's."""

    loader: Loader

    @property
    def processor(self) -> Processor:
        """The loader's."""
        return self.loader.elf.header.processor

    @property
    def size(self) -> int:
        """The bytes of the words."""
        return WORDS.size

    @property
    def layout(self) -> Layout:
        """How contexts save registers."""
        return self.processor.contexts[self.processor.charm_context][-1]

    @cached_property
    def _offsets(self) -> Mapping[int, int]:
        return {rule.dwarf_register: rule.offset for rule in self.layout}

    @property
    def context_moves(self) -> bool:
        """Whether the first word names the context, which is on the stack; else the words are its beginning."""
        return True

    def saved_pc(self, target: Target, signature: Signature) -> int:
        """Where a thread continues; raises `MemoryUnreadable`."""
        return word_at(target, signature.context + self._offsets[self.processor.pc])

    def signature(self, data: bytes, at: int, address: int) -> Optional[Signature]:
        """The signature at offset `at` of bytes that lie at `address`, None if there is none."""
        if at < 0 or at + WORDS.size > len(data):
            return None
        context, entry, end, _, size = WORDS.unpack_from(data, at)
        stack = Region(end - size, size)
        is_stack = 0 < size < end and stack.start <= context <= end - self._offsets[self.processor.stack_pointer]
        return Signature(address + at, context, entry, stack) if is_stack and self._fits(entry, stack) else None

    def _fits(self, entry: int, stack: Region) -> bool:
        space = self.loader.space
        if not self.loader.entry:
            return space.start <= stack.start < space.end and stack.start % PAGE == 0 and self.loader.has_code(entry)
        number = space.rank_at(stack.start)
        return entry == self.loader.entry and number is not None and space.begin(number) == stack.start

    def within(self, data: bytes, start: int) -> Iterator[Signature]:
        """The signatures in bytes that lie at `start`, by what every thread's entry has."""
        for offset, pattern in self._patterns:
            at = data.find(pattern)
            while at >= 0:
                first = at - offset - ENTRY
                signature = self.signature(data, first, start) if (start + first) % 8 == 0 else None
                if signature is not None:
                    yield signature
                at = data.find(pattern, at + 1)

    @cached_property
    def _patterns(self) -> list[tuple[int, bytes]]:
        """(offset in the entry's word, bytes without zeros: memory is full of those) that every thread has."""
        if self.loader.entry:
            return [(0, struct.pack("<Q", self.loader.entry).rstrip(b"\0"))]
        elf = self.loader.elf
        text = (
            (elf.load_bias + segment.vaddr, elf.load_bias + segment.end)
            for segment in elf.segments
            if segment.flags & 1
        )
        sound = ((low, end) for low, end in text if 1 << BUCKET <= low < end < TOP and end - low <= LARGEST_TEXT)
        highs = {high for low, end in sound for high in range(low >> BUCKET, ((end - 1) >> BUCKET) + 1)}
        return [(BUCKET // 8, high.to_bytes(5, "little").rstrip(b"\0")) for high in sorted(highs)]


class UcontextForm(Form):
    """The beginning of a ucontext_t: {flags, no link, start of stack, its flags, size}; no word is the entry."""

    @property
    def context_moves(self) -> bool:
        """Whether the first word names the context: the words are its beginning."""
        return False

    def saved_pc(self, target: Target, signature: Signature) -> int:
        """Where a thread continues; raises `MemoryUnreadable`."""
        processor = self.processor
        words = {rule.dwarf_register: word_at(target, signature.context + rule.offset) for rule in self.layout}
        words[processor.pc] &= processor.code_mask
        return processor.resumed(target.read, words)[processor.pc]

    def signature(self, data: bytes, at: int, address: int) -> Optional[Signature]:
        """The signature at offset `at` of bytes that lie at `address`, None if there is none."""
        if at < 0 or at + WORDS.size > len(data):
            return None
        _, link, start, _, size = WORDS.unpack_from(data, at)
        space = self.loader.space
        number = space.rank_at(start)
        if number is None or link or start != space.begin(number) or not 0 < size <= space.begin(number + 1) - start:
            return None
        return Signature(address + at, address + at, 0, Region(start, size))

    def within(self, data: bytes, start: int) -> Iterator[Signature]:
        """The signatures in bytes that lie at `start`, by the start of a rank's share in the third word."""
        first = -start % 8
        space, words = self.loader.space, memoryview(data)[first : len(data) - (len(data) - first) % 8].cast("Q")
        for index, value in enumerate(words):
            if space.start <= value < space.end and (value - space.start) % space.slot == 0:
                signature = self.signature(data, first + 8 * (index - 2), start)
                if signature is not None:
                    yield signature


FORMS = {"fcontext": Form, "ucontext": UcontextForm}  # by the kind of context


def form_of(loader: Loader) -> Form:
    """The form that Charm++'s threads have on the loader's processor."""
    return FORMS[loader.elf.header.processor.charm_context](loader)
