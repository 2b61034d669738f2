"""What is private to each of SMPI's ranks: copies of files, a data segment, thread-local blocks, or nothing.

Takes the ranks' stacks; gives the objects and each rank's placements, and the ranks that have ended, whose copies stay.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pieglobalsfind.decoders import gnu_unique
from pieglobalsfind.decoders.arguments_and_environment import arguments, variable
from pieglobalsfind.decoders.elf_scan import object_of
from pieglobalsfind.decoders.smpi import copies as of_files
from pieglobalsfind.decoders.smpi.copies import Copies, Loaded
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import Object, Placement, Rebase, Region
from pieglobalsfind.target import MemoryMapping, Target

UNPLACED = "the copies of ranks {} are not known: no call of their stacks is in any copy of the program"
DELETED = " (deleted)"
NO_FILE = "the program's file is not found: SMPI deletes the copies that it loads, and no argument names the program"
FOLDER = "PWD"  # a core file does not say where the process was


@dataclass(frozen=True)
class SmpiImages:
    """`entries` are by rank the loader's entries of its own copies, and by those the objects."""

    method: str
    objects: tuple[Object, ...]
    placements: Mapping[int, tuple[Placement, ...]]
    entries: Mapping[int, tuple[tuple[int, int], ...]]
    exited: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


Segments = Callable[[Object], Mapping[int, tuple[Placement, ...]]]


def images(
    target: Target,
    maps: Sequence[MemoryMapping],
    stacks: Mapping[int, Region],
    ranks: Sequence[int],
    is_one_job: bool,
    segments: Segments,
) -> SmpiImages:
    """`ranks` are those that have not ended; `stacks` are those of ranks that have begun to run.

    Under smpirun a copy has the number of its rank. Where no stack says otherwise, ranks that are in no code of the
    program, and copies without a rank, are taken for those of their numbers. `segments` gives the ranks' own data
    segments of a program without copies.
    """
    listed = of_files.entries(target, maps)
    copies = of_files.copies(target, listed)
    if not copies.programs:
        return _shared(target, maps, of_files.programs_without_copies(target, listed), ranks, segments)
    owners = of_files.entered(target, stacks, {number: loaded.code for number, loaded in copies.programs.items()})
    claims = Counter(owners.values())
    by_rank = {rank: number for rank, number in owners.items() if claims[number] == 1}
    keeps_order = is_one_job and all(rank == number for rank, number in by_rank.items())
    exited: tuple[int, ...] = ()
    if keeps_order:
        taken = set(by_rank.values())
        by_rank.update((rank, rank) for rank in stacks if rank in copies.programs and rank not in taken)
        exited = tuple(sorted(set(copies.programs) - set(ranks)))
    lacking = [rank for rank in stacks if rank not in by_rank]
    made = _copied(target, maps, copies, {**by_rank, **{number: number for number in exited}})
    warnings = (*made.warnings, *([UNPLACED.format(", ".join(map(str, lacking)))] if lacking else []))
    return replace(made, exited=exited, warnings=warnings)


def _copied(target: Target, maps: Sequence[MemoryMapping], copies: Copies, by_rank: Mapping[int, int]) -> SmpiImages:
    objects: list[Object] = []
    placements, entries = dict[int, tuple[Placement, ...]](), dict[int, tuple[tuple[int, int], ...]]()
    for rank, number in sorted(by_rank.items()):
        own = (copies.programs[number], *copies.libraries.get(number, ()))
        elf_objects = [_object(target, maps, objects, loaded, at == 0) for at, loaded in enumerate(own)]
        placements[rank] = tuple(
            Rebase(original.index, original.base, original.span, loaded.base)
            for original, loaded in zip(elf_objects, own)
        )
        entries[rank] = tuple((loaded.entry, original.index) for original, loaded in zip(elf_objects, own))
    is_lost = any(elf_object.is_program and elf_object.path.endswith(DELETED) for elf_object in objects)
    whole = gnu_unique.with_unique(target, objects, placements)
    return SmpiImages("fs", tuple(objects), whole, entries, (), (NO_FILE,) if is_lost else ())


def _object(
    target: Target, maps: Sequence[MemoryMapping], objects: list[Object], loaded: Loaded, is_program: bool
) -> Object:
    """The object that something is a copy of: the first copy stands for it, there is nothing else of it in memory."""
    for elf_object in objects:
        is_same = (elf_object.build_id, elf_object.span, elf_object.is_program) == (
            loaded.elf.build_id,
            loaded.elf.span,
            is_program,
        )
        if is_same and (elf_object.build_id or is_program):
            return elf_object
    elf = LoadedElf(target.read, loaded.base)
    path = program_path(target, maps, elf.build_id) if is_program else ""
    path = path or _mapped_as(maps, loaded.base) or loaded.name
    objects.append(replace(object_of(len(objects), elf, path, is_program), is_program=is_program))
    return objects[-1]


def _mapped_as(maps: Sequence[MemoryMapping], base: int) -> str:
    mapping = mapping_at(maps, base)
    return mapping.path if mapping is not None else ""


def _shared(
    target: Target,
    maps: Sequence[MemoryMapping],
    programs: Sequence[Loaded],
    ranks: Sequence[int],
    segments: Segments,
) -> SmpiImages:
    """Without copies: all ranks use the programs as they are loaded, but perhaps their data."""
    objects = [
        object_of(
            index, LoadedElf(target.read, loaded.base), _mapped_as(maps, loaded.base) or loaded.name, is_program=True
        )
        for index, loaded in enumerate(programs)
    ]
    private: dict[int, tuple[Placement, ...]] = {}
    for elf_object in objects:
        for rank, parts in segments(elf_object).items():
            private[rank] = (*private.get(rank, ()), *parts)
    entries = tuple((loaded.entry, index) for index, loaded in enumerate(programs))
    return SmpiImages("mmap" if private else "none", tuple(objects), private, dict.fromkeys(ranks, entries))


def program_path(target: Target, maps: Sequence[MemoryMapping], build_id: bytes) -> str:
    """The file that SMPI copies for each rank, by what smpimain was started with; "" if no argument names it.

    An argument is a path from the folder in which the process was started.
    """
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
