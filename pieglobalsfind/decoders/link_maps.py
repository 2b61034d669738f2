"""The system loader's lists of what it has loaded, and the copies that a rank has by them.

Takes a target and addresses of entries (struct link_map in glibc's <link.h>: addr, name, ld, next, prev); gives objects
and each rank's placements. Only what <link.h> declares is read, and no damaged list is followed far.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.elf_scan import object_of
from pieglobalsfind.elf.loaded import LoadedElf, loaded_at
from pieglobalsfind.model import Object, Placement, Rebase
from pieglobalsfind.target import MemoryMapping, Target, file_starts, word_at

DT_DEBUG = 21
MOST_OBJECTS = 4096  # of one linker namespace
MOST_NAMESPACES = 4096
CONSISTENT = 0  # r_state: RT_CONSISTENT
EXTENDED = 2  # r_version of struct r_debug_extended (glibc 2.35), which the next namespace's address follows


@dataclass(frozen=True)
class LinkMap:
    """An entry of the list; `dynamic` is where the object's dynamic section is."""

    bias: int
    dynamic: int
    following: int
    preceding: int


def link(target: Target, address: int) -> LinkMap:
    """Raises `MemoryUnreadable`."""
    bias, _, dynamic, following, preceding = struct.unpack("<5Q", target.read(address, 40))
    return LinkMap(bias, dynamic, following, preceding)


def chain(target: Target, address: int) -> Iterator[int]:
    """All entries of the namespace that the entry at `address` is in, from the first one on."""
    for _ in range(MOST_OBJECTS):
        before = link(target, address).preceding
        if not before:
            break
        address = before
    for _ in range(MOST_OBJECTS):
        if not address:
            return
        yield address
        address = link(target, address).following


def debugs(target: Target, maps: Sequence[MemoryMapping]) -> Iterator[int]:
    """Where struct r_debug is: DT_DEBUG of a program that the system's loader has started, in order of address."""
    for mapping in file_starts(maps):
        loaded = loaded_at(target.read, mapping.start)
        debug = loaded.dynamic.get(DT_DEBUG, 0) if loaded is not None else 0
        if debug:
            yield debug


def namespaces(target: Target, debug: int) -> Iterator[int]:
    """The first entry of each namespace, the program's own first; of older glibc's, that one alone.

    `debug` is where struct r_debug is (version, first entry, breakpoint, state, loader's base).
    """
    return (first for first, _ in _debugs(target, debug) if first)


def entries(target: Target, debug: int) -> Iterator[tuple[int, int]]:
    """(entry, bias) of all that the loader has loaded, namespace by namespace; raises `MemoryUnreadable`."""
    for first in namespaces(target, debug):
        for address in chain(target, first):
            yield address, link(target, address).bias


def is_changing(target: Target, debug: int) -> bool:
    """Whether the loader says of a namespace that it adds or removes objects now; `debug` is as in `namespaces`."""
    return any(state != CONSISTENT for _, state in _debugs(target, debug))


def _debugs(target: Target, debug: int) -> Iterator[tuple[int, int]]:
    """Of each namespace the first entry and the state; raises `MemoryUnreadable`."""
    for _ in range(MOST_NAMESPACES):
        version, first, _, state = struct.unpack("<i4xQQi", target.read(debug, 28))
        yield first, state
        if version < EXTENDED:
            return
        debug = word_at(target, debug + 40)
        if not debug:
            return


def placed(
    target: Target,
    maps: Sequence[MemoryMapping],
    chains: Mapping[int, Sequence[int]],
    shared: frozenset[int],
    programs: Mapping[int, int],
) -> Optional[tuple[tuple[Object, ...], dict[int, tuple[Placement, ...]]]]:
    """Of each rank the objects in its list, but those at `shared` biases; None if one lacks its program.

    `programs` are the entries of the ranks' programs. Raises `MemoryUnreadable`.
    """
    paths = {mapping.start: mapping.path for mapping in maps if mapping.offset == 0}
    objects: list[Object] = []
    placements: dict[int, tuple[Placement, ...]] = {}
    for rank, entries in chains.items():
        held: list[Rebase] = []
        for address in entries:
            bias = link(target, address).bias
            loaded = LoadedElf(target.read, bias) if bias in paths and bias not in shared else None
            if loaded is None or not loaded.segments or not loaded.build_id:
                continue
            elf_object = next((elf_object for elf_object in objects if _is_same(elf_object, loaded)), None)
            if elf_object is None:
                elf_object = object_of(len(objects), loaded, paths[bias], is_program=address == programs[rank])
                objects.append(elf_object)
            held.append(Rebase(elf_object.index, elf_object.base, elf_object.span, loaded.base))
        if not any(objects[rebase.object or 0].is_program for rebase in held):
            return None
        placements[rank] = tuple(held)
    return tuple(objects), placements


def _is_same(elf_object: Object, loaded: LoadedElf) -> bool:
    return bool(elf_object.build_id) and elf_object.build_id == loaded.build_id and elf_object.span == loaded.span
