"""The ranks of SimGrid's SMPI, without a hook: the engine's actors, their contexts, and the copies that they run.

Takes a target; gives the table, or None if the target has no SimGrid. Nothing is believed that does not validate; where
the layout is not known, there are no ranks, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional, Union

from pieglobalsfind import model
from pieglobalsfind.decoders.libc_threads import Described, block_of
from pieglobalsfind.decoders.running import stack_pointer, with_running
from pieglobalsfind.decoders.smpi.actors import Actor, find_actors
from pieglobalsfind.decoders.smpi.contexts import Saved, layout_of, saved_contexts
from pieglobalsfind.decoders.smpi.images import SmpiImages, images
from pieglobalsfind.decoders.smpi.library import SimgridLibrary, find_library
from pieglobalsfind.decoders.smpi.numbering import Numbers, identities, number
from pieglobalsfind.decoders.smpi.regions import redirections
from pieglobalsfind.decoders.smpi.threads import SmpiThread, find_threads
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.machine.processor import Layout, Processor
from pieglobalsfind.model import Absent, Evidence, Object, Placement, Rank, RankTable, Region, TlsBlock
from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import MemoryMapping, Target, read_many

RUNTIME, WITHOUT_MPI = "SMPI", "SimGrid S4U"
ENTRY = "smx_ctx_wrapper"  # where every actor begins that is not a kernel thread
EVIDENCE = Evidence("runtime", "SimGrid's actors, by its engine's list and run-time type information")
MISMATCH = "this looks like SimGrid, but its layout does not validate: no rank is shown"
NO_ACTORS = "SimGrid has no actors now: the simulation is starting, or has ended"
KINDS = "SimGrid's actors have contexts of several kinds: their stacks are unknown"
MOST_TRIES = 20
THREAD_KIND = "thread"
OF_RANK, OF_THREAD = 0, 1  # TlsBlock.level
RUNS = Absent("it is running", "its registers are its kernel thread's")
NOT_BEGUN = Absent("it has not begun to run")
ENDED = Absent("it has ended")
COMMON_HEAP = Absent("all ranks share libc's heap")
NO_RANGE = Absent("SMPI reserves no addresses for a rank")
UNCOUNTED = Absent("SimGrid does not count them")


@dataclass(frozen=True)
class ActorSurvey:
    """One look at a process: by rank its actor, and what that has saved.

    `threads` are by the context that they run, `described` is what libc says of them, and `untold` are the kernel
    threads whose stack pointers are unknown. The other threads' stack pointers tell which actor runs: SimGrid notes its
    choice before it switches.
    """

    numbers: Numbers
    actors: Mapping[int, Actor]
    saved: Mapping[int, Saved]
    threads: Mapping[int, SmpiThread]
    described: Optional[Described]
    starting: frozenset[int]
    untold: frozenset[int]


def decode(target: Target) -> Optional[RankTable]:
    """The ranks of SMPI, or of a simulation without MPI its actors; None without SimGrid.

    Of a process that runs actors may come and go meanwhile: it is read again then, some times.
    """
    table: Optional[RankTable] = None
    for _ in range(MOST_TRIES if target.is_live else 1):
        try:
            table = _moment(target, target.maps())
        except MemoryUnreadable:
            table = _empty(MISMATCH)
        if table is None or table.warnings != (MISMATCH,):
            return table
    return table


def _moment(target: Target, maps: Sequence[MemoryMapping]) -> Optional[RankTable]:
    library = find_library(target, maps)
    if library is None:
        return None
    listed = find_actors(target, library)
    if not listed:
        return _empty(MISMATCH if listed is None else NO_ACTORS)
    if len({actor.kind for actor in listed}) > 1:
        return _empty(KINDS)
    saved = saved_contexts(target, maps, library, listed)
    numbers = number(listed, identities(target, listed))
    threads, described = find_threads(target, maps, library, _mappings_of_stacks(maps, saved))
    processor = library.elf.header.processor
    layout = layout_of(target, maps, processor, listed[0].kind, saved)
    entry = library.elf.symbol_extent(ENTRY) or (0, 0)
    if not layout:
        saved = _on_threads(listed, threads)
    of_ranks = {rank: saved[index] for rank, index in numbers.actors.items()}
    kernel_threads = target.threads()
    actor_survey = ActorSurvey(
        numbers,
        {rank: listed[index] for rank, index in numbers.actors.items()},
        of_ranks,
        {thread.context: thread for thread in threads},
        described,
        _starting(target, processor, layout, of_ranks, entry[0]),
        frozenset(thread.tid for thread in kernel_threads if stack_pointer(thread, processor) < 0),
    )
    table = _table(target, maps, library, actor_survey, layout)
    table = replace(table, entry_function=entry[0], entry_function_size=entry[1])
    return with_running(table, kernel_threads) if layout else table


def _empty(warning: str) -> RankTable:
    return RankTable("", RUNTIME, 0, (), (), EVIDENCE, warnings=(warning,))


def _mappings_of_stacks(maps: Sequence[MemoryMapping], saved: Sequence[Saved]) -> frozenset[int]:
    """The starts of the mappings that are stacks of actors, and hold no thread's control block."""
    stacks = sorted((context.stack.start, context.stack.end) for context in saved if isinstance(context.stack, Region))
    return frozenset(mapping.start for mapping in maps if range_at(stacks, mapping.start))


def _on_threads(actors: Sequence[Actor], threads: Sequence[SmpiThread]) -> list[Saved]:
    """Actors that are kernel threads have those threads' stacks, below the control block."""
    by_context = {thread.context: thread for thread in threads if thread.context}
    contexts = []
    for actor in actors:
        thread = by_context.get(actor.context)
        stack: Union[Region, Absent] = model.OWN_THREAD
        if thread is not None:
            stack = Region(thread.stack.start, thread.pointer - thread.stack.start)
        contexts.append(Saved(stack, model.OWN_THREAD))
    return contexts


def _starting(
    target: Target, processor: Processor, layout: Layout, saved: Mapping[int, Saved], entry: int
) -> frozenset[int]:
    """The ranks that go on where every actor begins."""
    place = next((rule.offset for rule in layout if rule.dwarf_register == processor.pc), None)
    if place is None or not entry:
        return frozenset()
    contexts = {rank: context.context for rank, context in saved.items() if isinstance(context.context, int)}
    words = read_many(target, [(context + place, 8) for context in contexts.values()])
    return frozenset(
        rank for rank, word in zip(contexts, words) if word is not None and int.from_bytes(word, "little") == entry
    )


# ---- the table ----


def _table(
    target: Target,
    maps: Sequence[MemoryMapping],
    library: SimgridLibrary,
    actor_survey: ActorSurvey,
    layout: Layout,
) -> RankTable:
    stacks = {
        rank: context.stack
        for rank, context in actor_survey.saved.items()
        if isinstance(context.stack, Region) and rank not in actor_survey.starting
    }
    is_one_job = len(actor_survey.numbers.sizes) == 1

    def segments(program: Object) -> Mapping[int, tuple[Placement, ...]]:
        return redirections(target, maps, library, actor_survey.actors, program)

    own = images(target, maps, stacks, tuple(actor_survey.actors), is_one_job, segments)
    blocks = _thread_blocks(target, library.elf.header.processor, actor_survey, own)
    ranks = [
        _rank(actor_survey, rank, (*own.placements.get(rank, ()), *blocks.get(rank, ())))
        for rank in actor_survey.actors
    ]
    ranks += [_ended(rank, own.placements[rank]) for rank in own.exited]
    count = sum(actor_survey.numbers.sizes.values())
    if not actor_survey.numbers.are_ranks:
        ranks = [replace(rank, is_actor=True) for rank in ranks]
    return RankTable(
        method=own.method,
        runtime=RUNTIME if actor_survey.numbers.are_ranks else WITHOUT_MPI,
        rank_count=max(count, max(own.exited, default=-1) + 1) if count else len(ranks),
        objects=own.objects,
        ranks=tuple(sorted(ranks, key=lambda rank: rank.rank)),
        evidence=EVIDENCE,
        context_layout=layout,
        processor=library.elf.header.processor,
        warnings=(*actor_survey.numbers.warnings, *own.warnings),
        currents=tuple(thread.current for thread in actor_survey.threads.values() if thread.current),
    )


def _rank(actor_survey: ActorSurvey, rank: int, placements: tuple[Placement, ...]) -> Rank:
    actor, saved = actor_survey.actors[rank], actor_survey.saved[rank]
    thread = actor_survey.threads.get(actor.context)
    is_starting = rank in actor_survey.starting
    runs = thread is not None and not is_starting and (actor.kind == THREAD_KIND or thread.tid in actor_survey.untold)
    state = model.STARTING if is_starting else model.RUNNING if runs else model.READY
    return _made(rank, state, placements, saved, thread.tid if runs and thread is not None else 0, actor.context)


def _ended(rank: int, placements: tuple[Placement, ...]) -> Rank:
    return _made(rank, model.EXITED, placements, Saved(ENDED, ENDED))


def _made(
    rank: int, state: str, placements: tuple[Placement, ...], saved: Saved, kernel_thread: int = 0, thread: int = 0
) -> Rank:
    contexts: Mapping[str, Union[int, Absent]] = {model.STARTING: NOT_BEGUN, model.RUNNING: RUNS, model.EXITED: ENDED}
    return Rank(
        rank=rank,
        state=state,
        processing_element=0,
        kernel_thread=kernel_thread,
        context=contexts.get(state, saved.context),
        stack=saved.stack,
        heap=COMMON_HEAP,
        heap_used=COMMON_HEAP,
        range=NO_RANGE,
        waiting=None,
        switches=UNCOUNTED,
        placements=placements,
        evidence=EVIDENCE,
        thread=thread,
        context_at=saved.context_at,
    )


def _thread_blocks(
    target: Target, processor: Processor, actor_survey: ActorSurvey, own: SmpiImages
) -> dict[int, tuple[TlsBlock, ...]]:
    """By rank, the thread-local variables of its own copies: each copy is a TLS module of its own, the program one.

    Actors that SimGrid switches are all on one kernel thread, unless it runs several at once (contexts/nthreads).
    """
    if actor_survey.described is None or not any(elf_object.tls_size for elf_object in own.objects):
        return {}
    common = next(iter(actor_survey.threads.values())) if len(actor_survey.threads) == 1 else None
    blocks = {}
    for rank, entries in own.entries.items():
        actor = actor_survey.actors.get(rank)
        thread = common if actor is None or actor.kind != THREAD_KIND else actor_survey.threads.get(actor.context)
        if thread is not None:
            level = OF_RANK if own.method == "fs" or actor is None or actor.kind == THREAD_KIND else OF_THREAD
            blocks[rank] = tuple(
                _blocks(target, actor_survey.described, processor, thread, own.objects, entries, level)
            )
    return blocks


def _blocks(
    target: Target,
    described: Described,
    processor: Processor,
    thread: SmpiThread,
    objects: Sequence[Object],
    entries: Sequence[tuple[int, int]],
    level: int,
) -> Iterator[TlsBlock]:
    for entry, index in entries:
        size = objects[index].tls_size
        block = block_of(target, described, processor, thread.pointer, entry) if size else 0
        if block:
            yield TlsBlock(index, block, size, False, level)
