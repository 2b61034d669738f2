"""The words of a global offset table by which an object's code finds its own variables with external linkage.

Takes a target and an object; gives places by their distance from the object's base. It never says what a word holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.decoders.gnu_unique import relocated
from pieglobalsfind.elf.loaded import loaded_at
from pieglobalsfind.elf.symbol_table import STT_COMMON, STT_OBJECT
from pieglobalsfind.model import Object
from pieglobalsfind.target import Target

Slot = tuple[int, int, int]  # a word of the table, the variable that the linker meant, and that one's size


def variable_slots(target: Target, elf_object: Object) -> Iterator[Slot]:
    """The words by which code finds the object's own variables."""
    loaded = loaded_at(target.read, elf_object.base)
    if loaded is None:
        return
    end = loaded.low + loaded.span
    for (offset, _, _, _), entry in relocated(target, loaded, (loaded.header.processor.relocations.glob_dat,)):
        _, info, _, section, value, length = entry
        is_variable = section and length and info & 0xF in (STT_OBJECT, STT_COMMON)
        if is_variable and loaded.low <= value and value + length <= end and offset < end:
            yield offset - loaded.low, value - loaded.low, length
