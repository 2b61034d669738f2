"""Tasks of Process-in-Process (v2, v3; thread and process mode) without a hook, as ranks: what PiP and the loader know.

Takes a target; gives a table with the tasks' numbers, copies, threads and stacks, or None if the target is not PiP.
Each task has a libpip of its own, whose variables `pip_root` and `pip_task` (in `.symtab` alone) lead to what all share
and to the task's own record: the place of that record is the task's number, and no other offset in it is known.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Optional, Union

from pieglobalsfind import model
from pieglobalsfind.decoders import libc_threads, link_maps
from pieglobalsfind.decoders.pip import threads as pip_threads
from pieglobalsfind.decoders.pip.threads import PipThread
from pieglobalsfind.elf.file import PT_DYNAMIC, ElfFile
from pieglobalsfind.elf.loaded import LoadedElf, loaded_at
from pieglobalsfind.elf.named_symbols import symbols
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import Absent, Evidence, Object, Placement, Rank, RankTable, Rebase, Region, TlsBlock
from pieglobalsfind.target import MemoryMapping, Target, read_or_none, word_at

LIBRARY = "libpip.so"
ROOT, TASK = "pip_root", "pip_task"
MAGIC = b"PrcInPrc"
SIZES_AT = 16  # in the root: of all of it, of itself, of a task's record (behind magic and version)
MOST_TASKS = 4096
LARGEST_ROOT = 1 << 26  # bytes
MOST_TRIES = 20
PLTGOT = 3  # tag: the second word there is the object's own entry in the loader's list, where calls are bound lazily

EVIDENCE = Evidence("runtime", "PiP's own variables, by .symtab")
STRIPPED = "this looks like PiP, but its libpip.so has no .symtab: no task is shown; do not strip it"
UNREADABLE = "this looks like PiP, but {} can't be read, or is not the file that is loaded: no task is shown"
MISMATCH = "this looks like PiP, but its layout does not validate: no task is shown"
STARTING = "no task of PiP has been started yet, or none is left"
CHANGING = "tasks of PiP are starting or ending: not all of them are shown; look again"
LOST = "tasks {} of PiP are not shown: their linker namespaces do not validate"
UNDESCRIBED = (
    "libc does not describe its threads: which threads or processes PiP's tasks are is unknown, "
    "and a breakpoint in their code kills those that are processes"
)
UNKNOWN = Absent("PiP does not tell")
RUNS = Absent("it is running", "its registers are its kernel thread's")
NO_THREAD = Absent("no kernel thread of it is found: it has ended, or is a user-level process that is not scheduled")


@dataclass(frozen=True)
class PipLibrary:
    """One namespace's libpip: where it is, what it points to."""

    elf: LoadedElf
    root: int
    task: int


@dataclass(frozen=True)
class Shared:
    """What all tasks share; `tasks` is where their records begin, of `stride` bytes, up to `end`."""

    address: int
    tasks: int
    stride: int
    end: int

    def number(self, record: int) -> Optional[int]:
        """Whose record it is."""
        at, rest = divmod(record - self.tasks, self.stride)
        return at if not rest and 0 <= at <= MOST_TASKS and record + self.stride <= self.end else None


def decode(target: Target) -> Optional[RankTable]:
    """The tasks of PiP; where something does not validate, none, and a warning; None without PiP.

    While tasks start or end, a process that runs is looked at again, some times.
    """
    for _ in range(MOST_TRIES if target.is_live else 1):
        maps = target.maps()
        table = _moment(target, maps)
        if table is None or not _is_doubtful(table) or not _is_changing(target, maps):
            return table
    return table if table is None else replace(table, warnings=(CHANGING,))


def _moment(target: Target, maps: Sequence[MemoryMapping]) -> Optional[RankTable]:
    """What one look tells."""
    places = [mapping for mapping in maps if mapping.offset == 0 and PurePath(mapping.path).name.startswith(LIBRARY)]
    if not places:
        return None
    looked = [_library(target, place) for place in places]
    libraries = [library for library in looked if isinstance(library, PipLibrary)]
    if not libraries:
        return _empty(next((reason for reason in looked if isinstance(reason, str) and reason != STARTING), STARTING))
    root = next((shared for library in libraries for shared in _root(target, library.root)), None)
    if root is None:
        return _empty(STARTING if all(_is_unset(target, library) for library in libraries) else MISMATCH)
    try:
        return _table(target, maps, root, [library for library in libraries if library.root == root.address])
    except (MemoryUnreadable, ObjectFileError, struct.error):
        return _empty(MISMATCH)


def _is_doubtful(table: RankTable) -> bool:
    return any(warning == MISMATCH or warning.startswith(LOST.partition("{")[0]) for warning in table.warnings)


def _is_changing(target: Target, maps: Sequence[MemoryMapping]) -> bool:
    """Whether objects come or go: by the map, or because the loader says that its lists are not complete now."""
    if list(target.maps()) != list(maps):
        return True
    try:
        return any(link_maps.is_changing(target, debug) for debug in _debugs(target, maps))
    except MemoryUnreadable:
        return True


def _library(target: Target, mapping: MemoryMapping) -> Union[PipLibrary, str]:
    """The library that is mapped there; else a sentence that says why it can't be used."""
    try:
        loaded = LoadedElf(target.read, mapping.start)
        if not loaded.is_relocated:
            return STARTING
        path = target.open_path(mapping.path)
        if path is None:
            return UNREADABLE.format(mapping.path)
        with ElfFile(path) as elf:
            if elf.build_id != loaded.build_id:
                return UNREADABLE.format(mapping.path)
            places = symbols(elf, loaded.load_bias, (ROOT, TASK))
        if len(places) < 2:
            return STRIPPED
        root, task = (word_at(target, places[name][0]) for name in (ROOT, TASK))
        return PipLibrary(loaded, root, task)
    except (ObjectFileError, MemoryUnreadable, struct.error):
        return UNREADABLE.format(mapping.path)


def _is_unset(target: Target, library: PipLibrary) -> bool:
    """Whether it has no root yet, or no more: `pip_fin` clears all of it, and frees it then."""
    if not library.root:
        return True
    try:
        return not any(target.read(library.root, SIZES_AT))
    except MemoryUnreadable:
        return target.is_live


def _root(target: Target, address: int) -> Iterator[Shared]:
    data = read_or_none(target, address, SIZES_AT + 24)
    if data is None or not data.startswith(MAGIC):
        return
    whole, own, stride = struct.unpack_from("<QQQ", data, SIZES_AT)
    sizes = whole, own, stride
    if whole <= LARGEST_ROOT and SIZES_AT < own < whole and 0 < stride <= whole - own and not any(x % 8 for x in sizes):
        yield Shared(address, address + own, stride, address + whole)


def _table(target: Target, maps: Sequence[MemoryMapping], root: Shared, libraries: Sequence[PipLibrary]) -> RankTable:
    chains, processor = _chains(target, maps, libraries), libraries[0].elf.header.processor
    if not chains:  # no list of the loader's validates
        return _empty(MISMATCH)
    base = frozenset(chains[0].values())
    own = next((library for library in libraries if library.elf.load_bias in base), None)
    count = root.number(own.task) if own is not None else None
    if count is None:  # the root's own record is after those of the tasks; `pip_init` names it last
        return _empty(STARTING if own is not None and not own.task else MISMATCH)
    held = _held(target, root, count, chains[1:], [library for library in libraries if library is not own])
    placed = link_maps.placed(target, maps, held, base, {rank: entries[0] for rank, entries in held.items()})
    if placed is None:
        return _empty(MISMATCH)
    objects, placements = placed
    records = {number: root.tasks + number * root.stride for number in placements}
    fields = libc_threads.descriptions(target, maps)
    here = {thread.tid: thread for thread in target.threads()}
    threads: Mapping[int, PipThread] = {}
    if fields is not None:
        at = fields[libc_threads.TID][1]
        listed = libc_threads.listed_blocks(target, maps, fields) if processor.tls_is_above else ()
        area = root.address, root.end
        threads = pip_threads.find(target, maps, processor, at, records, root.stride, area, here, frozenset(listed))
        for number, thread in threads.items():
            blocks = _blocks(target, fields, processor, objects, placements[number], thread, held[number])
            placements[number] = (*placements[number], *blocks)
    claimed = {root.number(library.task) for library in libraries if library is not own}
    lost = sorted(number for number in claimed if number is not None and number < count and number not in placements)
    apart = any(thread.tid not in here for thread in threads.values())
    table = _filled(count, objects, placements, threads, apart, lost, processor)
    return replace(table, warnings=(*table.warnings, UNDESCRIBED)) if fields is None and placements else table


def _held(
    target: Target, root: Shared, count: int, chains: Sequence[Mapping[int, int]], libraries: Sequence[PipLibrary]
) -> dict[int, tuple[int, ...]]:
    """By the task's number, the entries of its namespace; not of one that several namespaces claim to be."""
    claims = Counter(root.number(library.task) for library in libraries)
    entries_of: dict[int, tuple[int, ...]] = {}
    for library in libraries:
        number = root.number(library.task)
        entries = next((tuple(chain) for chain in chains if library.elf.load_bias in chain.values()), ())
        if number is not None and number < count and claims[number] == 1 and entries and _is_sound(target, entries[0]):
            entries_of[number] = entries
    return entries_of


def _is_sound(target: Target, entry: int) -> bool:
    """Whether an entry and the object that it names agree on where its dynamic section is."""
    link = link_maps.link(target, entry)
    loaded = loaded_at(target.read, link.bias)
    if loaded is None:
        return False
    places = (header.vaddr for header in loaded.program_headers if header.type == PT_DYNAMIC)
    return link.dynamic in (loaded.load_bias + place for place in places)


def _blocks(
    target: Target,
    fields: Mapping[str, tuple[int, int]],
    processor: Processor,
    objects: Sequence[Object],
    copies: Sequence[Placement],
    thread: PipThread,
    entries: Sequence[int],
) -> Iterator[TlsBlock]:
    """The thread-local variables of a task's own copies."""
    places = {
        copy.copy: objects[copy.object] for copy in copies if isinstance(copy, Rebase) and copy.object is not None
    }
    for entry in entries:
        elf_object = places.get(link_maps.link(target, entry).bias)
        if elf_object is not None and elf_object.tls_size:
            block = libc_threads.block_of(target, fields, processor, thread.pointer, entry)
            if block:
                yield TlsBlock(elf_object.index, block, elf_object.tls_size, False, 0)


def _chains(target: Target, maps: Sequence[MemoryMapping], libraries: Sequence[PipLibrary]) -> list[dict[int, int]]:
    """Of each namespace {entry: bias}, the program's own first; by the loader's lists, or each libpip's own entry."""
    heads = [head for debug in _debugs(target, maps) for head in link_maps.namespaces(target, debug)]
    for pip_library in libraries:
        entry = _own_entry(target, pip_library.elf)
        if entry:
            heads.append(next(link_maps.chain(target, entry)))
    different = dict.fromkeys(heads)
    return [
        {entry: link_maps.link(target, entry).bias for entry in link_maps.chain(target, head)} for head in different
    ]


def _debugs(target: Target, maps: Sequence[MemoryMapping]) -> list[int]:
    """Where struct r_debug is: the loader says so in the program that it has started, PiP's glibc in each task's, too.

    Ascending by the program's address. Raises `MemoryUnreadable` if no program says so.
    """
    debugs = list(link_maps.debugs(target, maps))
    if not debugs:
        raise MemoryUnreadable(0, 16, "no program tells where the loader's lists are")
    return debugs


def _own_entry(target: Target, elf: LoadedElf) -> int:
    """The library's entry in its namespace's list, 0 if it does not know it."""
    try:
        entry = word_at(target, elf.dynamic.get(PLTGOT, 0) + 8)
        return entry if entry and link_maps.link(target, entry).bias == elf.load_bias else 0
    except MemoryUnreadable:
        return 0


# ---- the table ----


def _filled(
    count: int,
    objects: tuple[Object, ...],
    placements: Mapping[int, tuple[Placement, ...]],
    threads: Mapping[int, PipThread],
    apart: bool,
    lost: Sequence[int],
    processor: Processor,
) -> RankTable:
    """`apart`: tasks are processes; a debugger of one has to know which process the others are."""
    ranks = tuple(_rank(number, placements[number], threads.get(number), apart) for number in sorted(placements))
    warnings = [LOST.format(", ".join(map(str, lost)))] if lost else [] if ranks else [STARTING]
    return RankTable(
        method="pipprocess" if apart else "pipthread",
        runtime="PiP",
        rank_count=count,
        objects=objects,
        ranks=ranks,
        evidence=EVIDENCE,
        warnings=tuple(warnings),
        processor=processor,
    )


def _rank(number: int, placements: tuple[Placement, ...], thread: Optional[PipThread], apart: bool) -> Rank:
    stack: Union[Region, Absent] = thread.stack if thread else NO_THREAD
    return Rank(
        rank=number,
        state=model.RUNNING if thread else model.READY,
        processing_element=number,
        kernel_thread=thread.tid if thread else 0,
        context=RUNS if thread else NO_THREAD,
        stack=stack,
        heap=UNKNOWN,
        heap_used=UNKNOWN,
        range=UNKNOWN,
        waiting=None,
        switches=UNKNOWN,
        placements=placements,
        evidence=EVIDENCE,
        address_space=thread.tid if thread and apart else 0,
    )


def _empty(warning: str) -> RankTable:
    return RankTable("", "PiP", 0, (), (), EVIDENCE, warnings=(warning,))
