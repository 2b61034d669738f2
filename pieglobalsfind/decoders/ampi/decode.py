"""Ranks of stock Charm++/AMPI without a hook, whatever the privatization method: the runtime's own data.

Takes a target; gives the table with true rank numbers, copies, stacks and saved contexts, or None if the target is not
AMPI. Nothing is believed that does not validate; threads have the form that stock builds for the processor have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Optional, Union

from pieglobalsfind import model
from pieglobalsfind.decoders import elf_scan
from pieglobalsfind.decoders.ampi import images as ampi_images
from pieglobalsfind.decoders.ampi.images import AmpiImages
from pieglobalsfind.decoders.ampi.runtime_variables import Loader, find_loader, has_loader
from pieglobalsfind.decoders.ampi.stripped import find_stripped
from pieglobalsfind.decoders.ampi.swapped_globals import of_swap
from pieglobalsfind.decoders.ampi.thread_locals import with_thread_locals
from pieglobalsfind.decoders.ampi.thread_signature import form_of
from pieglobalsfind.decoders.ampi.threads import NO_THREAD, AmpiThread, find_threads, used_ends
from pieglobalsfind.decoders.ampi.unrewritten_got import as_used
from pieglobalsfind.decoders.arguments_and_environment import start, variable
from pieglobalsfind.decoders.running import stack_pointer, with_running
from pieglobalsfind.decoders.scanned_stacks import with_stacks
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Evidence, Placement, Rank, RankTable, Rebase, Region
from pieglobalsfind.target import MemoryMapping, Target, word_at

EVIDENCE = Evidence("runtime", "AMPI's own variables, by .symtab")
EVIDENCE_STRIPPED = Evidence("runtime", "AMPI's exported variables, and the form of its threads")
MISMATCH = "this looks like AMPI, but its layout does not validate: ranks are numbered by ascending address"
UNKNOWN_LAYOUT = "this looks like AMPI, but its layout does not validate: no rank is shown"
STARTING = "the job is starting: AMPI has not laid out its ranks yet"
STRIPPED = (
    "AMPI's loader has no .symtab, and its threads do not show the ranks' shares of addresses: "
    "only copies of -pieglobals can be found, and numbered by ascending address; do not strip the program"
)
UNPLACED = "AMPI's loader has no .symtab, and no stack shows the copies of ranks {}: do not strip the program"
NOT_THREADS = "AMPI's threads do not have the form that is known: stacks and saved registers are unknown"
NO_RANKS = "no rank of AMPI validates: the job is starting or ending, or its ranks are in other processes"
RESTLESS = "AMPI switched ranks while they were read: stacks are unknown; stop the job, or take a core file"
UNKNOWN = {MISMATCH, UNKNOWN_LAYOUT}
LAUNCH = "NETSTART"  # environment, by charmrun: "process address port pid port"
MOST_TRIES = 20
PAGE = 4096
NOT_SAVED = Absent("what it would return to is not code of AMPI's", "it may be being switched: look again")
_RUNNING = Absent("it may be running", "stop it in a debugger, or take a core file with gcore")

Threads = Mapping[int, Union[AmpiThread, Absent]]


def decode(target: Target) -> Optional[RankTable]:
    """The ranks of AMPI; where its layout does not validate, those of a scan, and a warning; None without AMPI.

    Of a process that runs the map may be older than what is read then: where objects come or go, it is looked at again.
    """
    for _ in range(MOST_TRIES if target.is_live else 1):
        maps = target.maps()
        table = _moment(target, maps)
        if table is None or not UNKNOWN & set(table.warnings):
            return table
        if not target.is_live or list(target.maps()) == list(maps):
            return table
    return dataclasses.replace(table, ranks=(), warnings=(NO_RANKS,)) if table is not None else None


def _moment(target: Target, maps: Sequence[MemoryMapping]) -> Optional[RankTable]:
    """What one look tells."""
    if not has_loader(target, maps):
        return None
    loader = find_loader(target, maps) or find_stripped(target, maps)
    if loader is None:
        return _copies_alone(target)
    scanned = elf_scan.ranks_of_copies(target, maps) if loader.is_pie else None
    table = _table(target, maps, loader, scanned) if loader.space.is_valid else None
    if table is None:
        if scanned is None:
            why = STARTING if loader.space.is_unset else UNKNOWN_LAYOUT
            return dataclasses.replace(_empty(loader), warnings=(why,))
        scanned = with_stacks(target, scanned, maps)
        return dataclasses.replace(scanned, runtime="AMPI", warnings=(*scanned.warnings, MISMATCH))
    return with_running(as_used(target, table), target.threads())


def _copies_alone(target: Target) -> RankTable:
    """What there is where a loader without `.symtab` tells no more: copies that have ELF headers, and why."""
    rank_table = elf_scan.decode(target)
    if rank_table is None:
        rank_table = RankTable("", "AMPI", 0, (), (), EVIDENCE)
    return dataclasses.replace(rank_table, runtime="AMPI", warnings=(*rank_table.warnings, STRIPPED))


def _table(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, scanned: Optional[RankTable]
) -> Optional[RankTable]:
    """The whole table; None if the copies do not validate."""
    threads, running, warning = _steady_threads(target, maps, loader)
    images = _images(target, maps, loader, scanned, threads)
    if images is None:
        is_early = not threads and not warning  # what links name may be half done
        return dataclasses.replace(_empty(loader), warnings=(NO_RANKS,)) if is_early else None
    if loader.is_pie and not images.placements:
        images = ampi_images.of_original(target, maps)
    numbers = sorted(images.placements if loader.is_pie else threads)
    ends = used_ends(target, loader, threads)
    ranks = tuple(
        _rank(loader, images, number, threads.get(number), ends.get(number, NO_THREAD), running) for number in numbers
    )
    lacks = (_unplaced(loader, images, ranks), images.warning)
    warnings = [sentence for sentence in (warning, "" if ranks or warning else NO_RANKS, *lacks) if sentence]
    return dataclasses.replace(
        _empty(loader),
        job_id=_job(target, maps, loader),
        method=images.method,
        objects=images.objects,
        ranks=ranks,
        context_layout=form_of(loader).layout,
        entry_function=loader.entry,
        entry_function_size=loader.entry_size,
        warnings=tuple(warnings),
        currents=tuple(address for _, address in loader.currents),
    )


def _job(target: Target, maps: Sequence[MemoryMapping], loader: Loader) -> str:
    """What the processes of one launch have in common, and those of no other; "" if there is no such thing."""
    launch = variable(target, maps, LAUNCH).partition(" ")[2]  # the first number is the process's own
    return launch or (start(target, maps) if loader.process_count == 1 else "")


def _empty(loader: Loader) -> RankTable:
    return RankTable(
        method="",
        runtime="AMPI",
        process_index=loader.process_index,
        process_count=loader.process_count,
        rank_count=max(loader.space.count, 0),
        objects=(),
        ranks=(),
        evidence=EVIDENCE_STRIPPED if loader.is_stripped else EVIDENCE,
        processor=loader.elf.header.processor,
    )


def _unplaced(loader: Loader, images: AmpiImages, ranks: Sequence[Rank]) -> str:
    """A sentence about ranks of a stripped job whose copies are not known; "" if there are none."""
    lacking = [rank.rank for rank in ranks if not rank.placements]
    is_lack = loader.is_stripped and images.method in ("pip", "fs") and lacking
    return UNPLACED.format(", ".join(map(str, lacking))) if is_lack else ""


def _steady_threads(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader
) -> tuple[Threads, Optional[dict[int, int]], str]:
    """The threads and which of them are current ({structure: element}), read while no current one changed.

    None: it is not known which ranks run. {}: only stack pointers tell. Of a running job that never kept still
    there is nothing to believe; the last value says why.
    """
    current = _current(target, loader)
    for _ in range(MOST_TRIES if target.is_live else 1):
        threads = find_threads(target, maps, loader)
        now = _current(target, loader)
        if now == current or not target.is_live:
            return threads or {}, current[0], NOT_THREADS if threads is None else ""
        current = now
    return {}, None, RESTLESS


def _current(target: Target, loader: Loader) -> tuple[Optional[dict[int, int]], object]:
    """The threads that the processing elements run, and on which element; what must not have changed meanwhile."""
    if loader.is_stripped:
        pointers = [(thread.tid, stack_pointer(thread, loader.elf.header.processor)) for thread in target.threads()]
        return (None if any(pointer < 0 for _, pointer in pointers) else {}), pointers
    try:
        current = {word_at(target, address): element for element, address in loader.currents}
    except MemoryUnreadable:
        current = {}
    return current or None, current


def _images(
    target: Target, maps: Sequence[MemoryMapping], loader: Loader, scanned: Optional[RankTable], threads: Threads
) -> Optional[AmpiImages]:
    believed = {number: ampi_thread for number, ampi_thread in threads.items() if isinstance(ampi_thread, AmpiThread)}
    if loader.is_pie or loader.rank_data is not None:
        images = ampi_images.of_scan(loader, scanned) if loader.is_pie else ampi_images.of_links(target, maps, loader)
        return with_thread_locals(target, maps, loader, believed, images) if images is not None else None
    if loader.is_stripped:
        programs = ampi_images.programs_by_stacks(target, maps, loader, believed)
        if programs is not None:
            return ampi_images.of_links(target, maps, loader, programs)
    if loader.swaps:
        return of_swap(target, loader, believed)
    if loader.tls is not None:
        return ampi_images.of_tls(loader, believed, *loader.tls)
    return ampi_images.of_program(loader, believed)


def _rank(
    loader: Loader,
    images: AmpiImages,
    number: int,
    thread: Union[AmpiThread, Absent, None],
    used_end: Union[int, Absent],
    running: Optional[Mapping[int, int]],
) -> Rank:
    held = images.placements.get(number, ())
    begin, end = loader.space.begin(number), loader.space.begin(number + 1)
    ampi_thread = thread if isinstance(thread, AmpiThread) else None
    why = thread if isinstance(thread, Absent) else NO_THREAD
    element = running.get(ampi_thread.address) if running and ampi_thread else None
    runs = element is not None
    if element is None and len(loader.currents) == 1:
        element = loader.currents[0][0]
    if element is None and ampi_thread is not None:
        element = ampi_thread.element
    return Rank(
        rank=number,
        state=model.RUNNING if runs else model.READY,
        processing_element=model.UNKNOWN_ELEMENT if element is None else element,
        kernel_thread=0,
        context=_context(ampi_thread, runs or running is None) if ampi_thread else why,
        stack=ampi_thread.stack if ampi_thread else why,
        heap=_heap(used_end, ampi_thread, held) if ampi_thread else why,
        heap_used=Absent("AMPI's allocator does not say"),
        range=Region(begin, end - begin),
        waiting=None,
        switches=Absent("AMPI does not count them"),
        placements=held,
        evidence=EVIDENCE_STRIPPED if loader.is_stripped else EVIDENCE,
        thread=ampi_thread.address if ampi_thread else 0,
        context_at=ampi_thread.context_at if ampi_thread else 0,
    )


def _context(thread: AmpiThread, may_run: bool) -> Union[int, Absent]:
    if may_run:
        return _RUNNING
    return thread.context if thread.is_saved else NOT_SAVED


def _heap(end: Union[int, Absent], thread: AmpiThread, held: Sequence[Placement]) -> Union[Region, Absent]:
    """What isomalloc has given out after the stack, the copies, swapped globals and the TLS block."""
    if isinstance(end, Absent):
        return end
    parts = [rebase.copy + rebase.size for rebase in held if isinstance(rebase, Rebase)]
    parts += [block.address for block in held if isinstance(block, model.TlsBlock)]
    parts += [redirect.storage + redirect.size for redirect in held if isinstance(redirect, model.Redirect)]
    begin = max([thread.stack.end, *(part for part in parts if thread.stack.end <= part <= end)])
    begin = -(-begin // PAGE) * PAGE
    return Region(begin, end - begin) if begin < end else Absent("isomalloc has allocated nothing")
