"""Each rank's own globals under AMPI's Swapglobals: a switch writes their addresses into the global offset table.

AMPI keeps one list for the process, {bytes in all, vector of {word of the table, offset}} (`CtgGlobalList`, in
conv-core/global-elfgot.C), and each thread has a block of that many bytes after its stack. Takes a target, its loader
and threads; gives each rank's redirections. The variables of a rank that no thread proves to have a block stay unknown.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Optional

from pieglobalsfind.decoders.ampi.images import AmpiImages
from pieglobalsfind.decoders.ampi.runtime_variables import Loader
from pieglobalsfind.decoders.ampi.threads import AmpiThread
from pieglobalsfind.decoders.elf_scan import object_of
from pieglobalsfind.decoders.got_slots import variable_slots
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Redirect
from pieglobalsfind.target import Target, word_at

RECORD = struct.Struct("<QQ")
MOST_RECORDS = 1 << 20
UNKNOWN = "AMPI may swap globals of this program, and its list of them {}: those shown may not be the ranks' own"
STRIPPED, INVALID = "is known by .symtab alone (do not strip the program)", "does not validate"


def of_swap(target: Target, loader: Loader, threads: Mapping[int, AmpiThread]) -> AmpiImages:
    """The program, and where each rank has the variables that AMPI's list names, or a warning."""
    program = object_of(0, loader.elf, loader.path, is_program=True)
    records = _records(target, loader)
    variables = [
        (program.base + slot, program.base + variable, size, records[program.base + slot])
        for slot, variable, size in variable_slots(target, program)
        if records and program.base + slot in records
    ]
    placements = {}
    for number, thread in threads.items():
        block = thread.stack.end
        placements[number] = tuple(
            Redirect(program.index, original, size, block + offset, slot)
            for slot, original, size, offset in variables
            if block in thread.words
        )
    is_known = records is not None and all(bool(placement) == bool(variables) for placement in placements.values())
    return AmpiImages("swap", (program,), placements, "" if is_known else UNKNOWN.format(INVALID))


def _records(target: Target, loader: Loader) -> Optional[dict[int, int]]:
    """By word of the table, the offset in a rank's block; None if the list is not known."""
    if not loader.swapped:
        return None
    try:
        size, begin, end = struct.unpack("<QQQ", target.read(word_at(target, loader.swapped), 24))
        if not begin <= end or (end - begin) % RECORD.size or (end - begin) // RECORD.size > MOST_RECORDS:
            return None
        records = dict(RECORD.iter_unpack(target.read(begin, end - begin)))
    except MemoryUnreadable:
        return None
    return records if all(offset <= size for offset in records.values()) else None
