"""The objects of which ranks have copies, and where GDB must place their symbols.

Takes the process and GDB's own program; gives objects, paths and biases. Asks GDB only what its program is.
"""

from __future__ import annotations

import os
from typing import Optional

import gdb

from gdbext.gdb_api.target import path_of, program_path
from pieglobalsfind.model import Absent, Object, Rebase
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets import in_address_space


def copied(moment: ProcessView) -> tuple[Object, ...]:
    """Return the objects of which ranks have copies."""
    return tuple(
        elf_object for elf_object in moment.table.objects if elf_object.privatized and elf_object.path.startswith("/")
    )


def is_main_program(elf_object: Object) -> bool:
    """Whether GDB has loaded it as the program itself: then it does not look into another file for its variables.

    A launcher may have the program's name.
    """
    program = program_path()
    if not program or os.path.basename(program) != os.path.basename(elf_object.path):
        return False
    build_ids = [objfile.build_id or "" for objfile in gdb.objfiles() if path_of(objfile) == program]
    return not build_ids or elf_object.build_id.hex() in build_ids


def is_elsewhere(moment: ProcessView, rank: int) -> bool:
    """Whether the rank's memory is another process's than GDB is attached to."""
    return isinstance(in_address_space(moment.target, moment.rank(rank).pages_of), Absent)


def has_copy(moment: ProcessView, number: int, rank: int) -> bool:
    """Whether a rank has its own copy of the object of a number."""
    return any(
        isinstance(placement, Rebase) and placement.object == number for placement in moment.rank(rank).placements
    )


def is_copying(moment: ProcessView) -> bool:
    """Whether ranks are still being made, so that the originals are about to be copied."""
    table = moment.table
    return not table.ranks or table.process_count > 1 or len(table.ranks) < table.rank_count


def copied_paths(moment: ProcessView) -> frozenset[str]:
    """The files of the copied objects, and those that GDB has loaded copies from."""
    return moment.copy_paths.union(elf_object.path for elf_object in copied(moment))


def bias_of(moment: ProcessView, elf_object: Object, rank: Optional[int]) -> Optional[int]:
    """What to add to the object's p_vaddr's in a rank; None if it is not known where the rank has it."""
    if rank is None:
        return elf_object.load_bias
    base = data_place(moment.rank(rank), elf_object, elf_object.base)
    return elf_object.load_bias + base - elf_object.base if isinstance(base, int) else None
