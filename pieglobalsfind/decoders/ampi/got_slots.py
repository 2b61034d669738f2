"""The words of a global offset table by which an object's code finds its own variables with external linkage.

Takes a target and an object; gives places by their distance from the object's base. It never says what a word holds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pieglobalsfind.elf.file import DT_SYMTAB, SYMBOL_SIZE
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.symbol_table import STT_COMMON, STT_OBJECT
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.model import Object
from pieglobalsfind.target import Target, read_many

Slot = tuple[int, int, int]  # a word of the table, the variable that the linker meant, and that one's size


def variable_slots(target: Target, elf_object: Object) -> Iterator[Slot]:
    """The words by which code finds the object's own variables."""
    try:
        loaded = LoadedElf(target.read, elf_object.base)
        glob_dat = loaded.header.processor.relocations.glob_dat
        rows = [row for row in loaded.relocations() if row[1] == glob_dat]
    except (MemoryUnreadable, ObjectFileError):
        return
    start, end = loaded.table(DT_SYMTAB), loaded.low + loaded.span
    symbols = read_many(target, [(start + SYMBOL_SIZE * symbol, SYMBOL_SIZE) for _, _, symbol, _ in rows])
    for (offset, _, _, _), entry in zip(rows, symbols):
        _, info, _, section, value, length = struct.unpack("<IBBHQQ", entry or bytes(SYMBOL_SIZE))
        is_variable = section and length and info & 0xF in (STT_OBJECT, STT_COMMON)
        if is_variable and loaded.low <= value and value + length <= end and offset < end:
            yield offset - loaded.low, value - loaded.low, length
