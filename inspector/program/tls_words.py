"""Find the words by which a program's code reaches its thread-local variables, and which variable each means.

Takes an ELF file; gives a place for each variable as if there were one block, at `BLOCK`, where no file has anything.
Source: ELF Handling For Thread-Local Storage, 4.1.6 and 4.4 (x86-64).
"""

from __future__ import annotations

from dataclasses import dataclass

from pieglobalsfind.elf.file import PT_TLS, ElfFile

from .program_file import ProgramFile

BLOCK = 1 << 60  # where the block begins
ANY_BLOCK = 1 << 61  # what __tls_get_addr returns for the whole block, from where code goes on to a variable
WORD = 8


@dataclass(frozen=True)
class TlsWords:
    """`pointer`: the place of the thread pointer. The others: by vaddr of a word, the place that it leads to.

    `offsets`: words that hold a distance from the thread pointer. `modules`: the first of each pair of words that
    __tls_get_addr takes.
    """

    pointer: int
    offsets: dict[int, int]
    modules: dict[int, int]

    def has(self, place: int) -> bool:
        """Return whether a place is in the block."""
        return BLOCK <= place < self.pointer

    def in_block(self, place: int) -> int:
        """Return the place of a variable that code reaches from the block's beginning; others stay as they are."""
        return place - ANY_BLOCK + BLOCK if place >= ANY_BLOCK else place


def place_of(offset: int) -> int:
    """Return the place of the variable at an offset in the file's block."""
    return BLOCK + offset


def tls_words(elf: ElfFile) -> TlsWords:
    """Read a file's words; raises `ObjectFileError` if it is damaged."""
    segment = next((header for header in elf.program_headers if header.type == PT_TLS), None)
    if segment is None:
        return TlsWords(BLOCK, {}, {})
    align = max(segment.align, 1)
    offsets: dict[int, int] = {}
    modules: dict[int, int] = {}
    seconds: dict[int, int] = {}
    with ProgramFile(elf.path) as file:
        kinds = file.processor.relocations
        for relocation in file.relocations():
            symbol = file.symbol(relocation)
            value = relocation.addend + (symbol.value if symbol is not None else 0)
            if symbol is not None and not symbol.is_defined:
                continue  # another file's
            if relocation.type == kinds.tls_distance:
                offsets[relocation.offset] = place_of(value)
            elif relocation.type == kinds.tls_module:
                own = symbol is not None or _word(
                    elf, relocation.offset + WORD
                )  # the linker fills the second of its own
                modules[relocation.offset] = place_of(_word(elf, relocation.offset + WORD)) if own else ANY_BLOCK
            elif relocation.type == kinds.tls_offset:
                seconds[relocation.offset] = value
    modules.update({at: place_of(seconds[at + WORD]) for at in modules if at + WORD in seconds})
    return TlsWords(BLOCK + -(-segment.memory_size // align) * align, offsets, modules)


def _word(elf: ElfFile, vaddr: int) -> int:
    """A word that the linker has filled: of a pair whose variable, or whose block, is the file's own."""
    return int.from_bytes(elf.at(vaddr, WORD), "little")
