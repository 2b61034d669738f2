"""The user's program: the file that SMPI copies for each rank, by what smpimain was started with.

Takes a target and a build-id; gives the file's path, "" if no argument names a file of that build-id. The copies
themselves are deleted as soon as they are loaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pieglobalsfind.decoders.arguments_and_environment import arguments, variable
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.target import MemoryMapping, Target

FOLDER = "PWD"  # a core file does not say where the process was


def program_path(target: Target, maps: Sequence[MemoryMapping], build_id: bytes) -> str:
    """An argument is a path from the folder in which the process was started."""
    if not build_id:
        return ""
    folder = variable(target, maps, FOLDER)
    for word in arguments(target, maps)[1:]:
        if word and not word.startswith("-"):
            path = os.path.normpath(f"{folder}/{word}" if word[0] != "/" else word)
            place = target.open_path(path) if path.startswith("/") else None
            if place is not None and _has(place, build_id):
                return path
    return ""


def _has(place: str, build_id: bytes) -> bool:
    try:
        with ElfFile(place) as elf:
            return elf.build_id == build_id
    except ObjectFileError:
        return False
