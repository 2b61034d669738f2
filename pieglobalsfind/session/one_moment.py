"""Reads running processes at one moment: plans what to copy, pauses them for milliseconds, and analyses the copies.

Takes live targets and what reads them; gives what that makes of the paused targets. Where the copy lacks something,
the processes are paused again, a few times at most; what is still lacking then, the reader says. The last time, where
ranks may migrate or only copies tell of them, what to copy is planned while all stand still. Where a thread stood
between two ranks, the processes are paused again, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Optional, TypeVar

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.communicators import communicators
from pieglobalsfind.decoders.running import is_between_ranks
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetError
from pieglobalsfind.model import SCAN, Absent, Alias, Rank, RankTable, Rebase, Redirect, Region, TlsBlock
from pieglobalsfind.ranges import Range, merged, without
from pieglobalsfind.stacks.saved_registers import Contexts
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import PausedTarget
from pieglobalsfind.targets.stand_in import RecordedTarget
from pieglobalsfind.targets.stop_and_copy import ListPlan, Plan, StackPlan, pause

Value = TypeVar("Value")

OWN_DATA = "runtime"  # the tier of evidence of ranks that are found by their runtime's own data
AMPI, SMPI, ANY_CALL = "AMPI", "SMPI", "MPI_Wait"  # whichever call it is, its requests are found in the same way
MOST_STOPS = 3
MOST_STOPS_BETWEEN = 5  # where nothing is missed but a context that a thread between two ranks holds
MOST_SETTLING = 20  # stops where a thread stood between two ranks
BREATH = 0.002  # seconds
MOST_REHEARSALS = 5
PAGE = 4096
LARGE = 1 << 20  # bytes of data of which pages that were never touched are not copied
LEAST_STACK = 16384  # bytes at a stack's end that are copied where its stack pointer is unknown
THREAD_SIZE = 0x400  # bytes of a runtime's structure of a thread
CONTEXT_SIZE = 0x400  # bytes of saved registers that lie in no stack


@dataclass(frozen=True)
class ProcessPlan:
    """A process that is to be paused; `others` are those whose kernel threads its ranks are (tasks of PiP).

    `runtime`: by whose own data its ranks were found, "" if another way.
    """

    live: LiveTarget
    plan: Plan
    others: tuple[tuple[LiveTarget, Plan], ...] = ()
    runtime: str = ""

    @property
    def is_restless(self) -> bool:
        """Return whether ranks may migrate, or what leads to them change, faster than a plan can be made."""
        return self.plan.with_maps


def at_one_moment(
    processes: Sequence[ProcessPlan], with_data: bool, read: Callable[[Sequence[PausedTarget]], Value]
) -> Value:
    """What `read` makes of the processes as they were while all of them stood still.

    `with_data`: ranks' globals are copied, too. Raises what `read` raises, and `NotStoppableError` where a process may
    not be stopped.
    """
    planned = list(processes)
    missed: list[list[tuple[Range, ...]]] = []
    is_stale = [False] * len(planned)  # by process, whether the last copy lacked anything
    lacking = 0  # stops whose copies did
    seconds = 0.0
    for stop in count(1):
        if lacking >= MOST_STOPS - 1 and any(process_plan.is_restless for process_plan in planned):
            targets = _paused(planned, seconds, stop, partial(_enlarged_all, planned, missed, with_data))
        else:
            planned = [
                _enlarged(planned[at], missed[at], with_data) if is_stale[at] else planned[at]
                for at in range(len(planned))
            ]
            targets = _paused(planned, seconds, stop)
        seconds = targets[0].pause.seconds
        value, problem = _attempt(read, targets)
        missed = [_missed(target) for target in targets]
        is_stale = [
            any(missed[at]) or (plan.is_restless and targets[at].lacks_ranks) for at, plan in enumerate(planned)
        ]
        lacking += any(is_stale)
        is_between = any(target.is_between_ranks for target in targets)
        most = _most_stops(any(is_stale), is_between, any(map(any, missed)))
        if (lacking if any(is_stale) else stop) >= most:
            break
        if is_between:
            time.sleep(BREATH)  # the thread may wait for a processor
    if problem is not None:
        raise problem
    assert value is not None
    return value[0]


def _most_stops(is_stale: bool, is_between: bool, has_missed: bool) -> int:
    """After how many stops like the last one to give up."""
    if not is_stale:
        return MOST_SETTLING if is_between else 1
    return MOST_STOPS_BETWEEN if is_between and not has_missed else MOST_STOPS


def decoded(target: PausedTarget) -> RankTable:
    """The ranks of a paused process. Raises as `decode` does.

    Where every rank is found, with what leads to its stack, the copy lacked nothing for that.
    """
    table = decode(target, target.runtime)
    is_whole = all(rank.record or isinstance(rank.context, int) or rank.kernel_thread for rank in table.ranks)
    target.lacks_ranks = target.was_refused or (not is_whole and bool(table.context_layout))
    target.is_between_ranks = is_between_ranks(table)
    if is_whole:
        target.forget_misses()
    return table


def _attempt(
    read: Callable[[Sequence[PausedTarget]], Value], targets: Sequence[PausedTarget]
) -> tuple[Optional[tuple[Value]], Optional[RanklensError]]:
    """The value in a tuple of its own, or why there is none."""
    try:
        return (read(targets),), None
    except RanklensError as error:
        return None, error


def _paused(
    processes: Sequence[ProcessPlan],
    seconds: float,
    stop: int,
    again: Optional[Callable[[], list[ProcessPlan]]] = None,
) -> list[PausedTarget]:
    """The targets, with how long the processes stood still in this stop and in those before.

    `again` makes the plans anew while they stand still.
    """
    planned = list(processes)

    def planned_again() -> list[tuple[LiveTarget, Plan]]:
        planned[:] = again() if again is not None else planned
        return _flat(planned)

    copies = iter(pause(_flat(planned), again=None if again is None else planned_again))
    targets = []
    for process_plan in planned:
        target = next(copies)
        target.runtime = process_plan.runtime
        target.others = {other.pid: next(copies) for other, _ in process_plan.others}
        target.pause = replace(target.pause, seconds=seconds + target.pause.seconds, stops=stop)
        targets.append(target)
    return targets


def _flat(processes: Sequence[ProcessPlan]) -> list[tuple[LiveTarget, Plan]]:
    return [pair for process in processes for pair in ((process.live, process.plan), *process.others)]


def _missed(target: PausedTarget) -> list[tuple[Range, ...]]:
    return [target.missed(), *(other.missed() for other in target.others.values())]


def _enlarged(process: ProcessPlan, missed: Sequence[tuple[Range, ...]], with_data: bool) -> ProcessPlan:
    """With a plan made again, as ranks may have come or gone, and what was missed."""
    now = plan_for(process.live, with_data, with_requests=True)
    plan = now.plan.enlarged((*process.plan.ranges, *missed[0]))
    others = tuple((live, old.enlarged(ranges)) for (live, old), ranges in zip(process.others, missed[1:]))
    return replace(now, plan=plan, others=others or now.others)


def _enlarged_all(
    processes: Sequence[ProcessPlan], missed: Sequence[Sequence[tuple[Range, ...]]], with_data: bool
) -> list[ProcessPlan]:
    return [_enlarged(process, ranges, with_data) for process, ranges in zip(processes, missed)]


# ---- plans ----


def plan_for(live: LiveTarget, with_data: bool, with_requests: bool = False) -> ProcessPlan:
    """What to copy of a process that runs; `with_data`: ranks' globals, too; `with_requests`: what ranks wait for.

    Raises `RanklensError` if it has no ranks, or can't be read.
    """
    table, recorded = _rehearsed(live)
    lists = rehearse_requests(recorded, table) if with_requests else ()
    ranks = [*table.ranks]
    own = {thread.tid for thread in live.threads()}
    elsewhere = sorted({rank.address_space for rank in ranks} - own - {0})
    is_scan = table.evidence.tier == SCAN
    is_restless = is_scan or table.process_count > 1 or len(table.currents) > 1
    ranges = [*recorded.noted(is_restless), *_structures(table, ranks)]
    untouched: list[Range] = []
    for start, end in merged(_data(table, ranks)) if with_data else ():
        held = live.backed(start, end) if end - start >= LARGE else [(start, end)]
        ranges += held
        untouched += without(start, end, held)
    stacks = tuple(stacks_of(table, ranks))
    plan = Plan(merged(ranges), stacks, lists, _unsettled(live, table), tuple(untouched), is_scan, is_restless)
    others = []
    for pid in elsewhere:
        seen = [rank for rank in ranks if rank.address_space == pid]
        data = tuple(_data(table, seen)) if with_data and any(map(_is_alias, seen)) else ()
        others.append((LiveTarget(pid), Plan(merged(data), tuple(stacks_of(table, seen)))))
    runtime = table.runtime if table.evidence.tier == OWN_DATA else ""
    return ProcessPlan(live, plan, tuple(others), runtime)


def _unsettled(live: LiveTarget, table: RankTable) -> tuple[Range, ...]:
    """Code in which a thread is between two ranks."""
    if table.runtime != AMPI:
        return ()
    # Late: jobs with a registry need nothing of AMPI's.
    from pieglobalsfind.decoders.ampi.runtime_variables import switching_code

    return switching_code(live)


def light_plan(table: RankTable, plan: Plan, places: Sequence[Range]) -> Plan:
    """What to copy to see the ranks of a table at a later moment (`decoders.refresh_ranks`), if `plan` found them.

    `places` is what that reads beyond the words that lead to threads and contexts.
    """
    ranges = [*places, *((rank.thread, rank.thread + 8) for rank in table.ranks if rank.thread)]
    ranges += [(rank.context_at, rank.context_at + 8) for rank in table.ranks if rank.context_at]
    ranges += [(address, address + 8) for address in table.currents]
    for rank in table.ranks:
        if isinstance(rank.context, int) and not (isinstance(rank.stack, Region) and rank.context in rank.stack):
            ranges.append((rank.context, rank.context + CONTEXT_SIZE))
    return Plan(merged(ranges), tuple(stacks_of(table, table.ranks)), unsettled=plan.unsettled)


def _is_alias(rank: Rank) -> bool:
    return any(isinstance(placement, Alias) for placement in rank.placements)


def _rehearsed(live: LiveTarget) -> tuple[RankTable, RecordedTarget]:
    """Where everything lies, read while the process runs: torn values in it do no harm."""
    for _ in range(MOST_REHEARSALS):
        recorded = RecordedTarget(live)
        try:
            table = decode(recorded)
            communicators(recorded, table)
            return table, recorded
        except (NotVirtualizedError, TargetError):
            raise
        except RanklensError as error:
            problem = error
    raise problem


def rehearse_requests(recorded: RecordedTarget, table: RankTable) -> tuple[ListPlan, ...]:
    """Read what ranks wait for, where words lead to that: one pause would have to follow another for each.

    Returns lists of requests that have others before long: in the pause they are read again.
    """
    if table.runtime == SMPI:
        _rehearse_stacks(recorded, table)
    elif table.runtime == AMPI:
        from pieglobalsfind.decoders.ampi.requests import REQUEST_SIZE, AmpiRequests  # late: most ask for no requests

        return tuple(ListPlan(place, REQUEST_SIZE) for place in AmpiRequests(recorded, table).read())
    return ()


def _rehearse_stacks(recorded: RecordedTarget, table: RankTable) -> None:
    """SMPI's requests, to which words on the ranks' stacks lead."""
    from pieglobalsfind.decoders.smpi.requests import Requests  # late: most commands ask for no requests

    requests, contexts = Requests(recorded, table), Contexts(recorded, table, recorded.maps())
    threads = {thread.tid: thread.registers for thread in recorded.threads()}
    communicators_of_waits = set[int]()
    for rank in table.ranks:
        with suppress(RanklensError):
            registers = threads.get(rank.kernel_thread) if rank.is_on_thread else contexts.saved(rank)
            if registers is not None and not isinstance(registers, Absent):
                pointer = registers.get(table.processor.stack_pointer, 0)
                waiting, _ = requests.waiting(rank, pointer, ANY_CALL)
                communicators_of_waits.add(waiting.communicator)
    requests.members(communicators_of_waits - {0})


def stacks_of(table: RankTable, ranks: Sequence[Rank]) -> Iterator[StackPlan]:
    """What of the ranks' stacks is copied."""
    pointer_number = table.processor.stack_pointer
    rule = next(
        (register_rule for register_rule in table.context_layout if register_rule.dwarf_register == pointer_number),
        None,
    )
    for rank in ranks:
        if isinstance(rank.stack, Region):
            pointer = 0
            if rule is not None and not rule.saved:  # the context lies in the stack, and its end is the stack pointer
                pointer = rank.context_at
            elif rule is not None and isinstance(rank.context, int):
                pointer = rank.context + rule.offset
            yield StackPlan(rank.stack.start, rank.stack.end, pointer, _expected(rank.stack, rank.context))


def _expected(stack: Region, context: object) -> int:
    used = stack.end - context if isinstance(context, int) and context in stack else 0
    return min(max(-(-(used + PAGE) // PAGE) * PAGE, LEAST_STACK), stack.size)


def _structures(table: RankTable, ranks: Sequence[Rank]) -> Iterator[Range]:
    """What the runtime keeps of each rank and of its processing elements."""
    for rank in ranks:
        if rank.thread:
            yield rank.thread, rank.thread + THREAD_SIZE
        if rank.context_at:
            yield rank.context_at, rank.context_at + 8
        if isinstance(rank.context, int) and not (isinstance(rank.stack, Region) and rank.context in rank.stack):
            yield rank.context, rank.context + CONTEXT_SIZE
    for address in table.currents:
        yield address, address + 8


def _data(table: RankTable, ranks: Sequence[Rank]) -> Iterator[Range]:
    """Where ranks' globals lie, and those of the originals."""
    for elf_object in table.objects:
        yield from (
            (elf_object.base + part.offset, elf_object.base + part.end) for part in elf_object.segments if part.writable
        )
    for placement in (part for rank in ranks for part in rank.placements):
        if isinstance(placement, Rebase):
            yield from _copied_data(table, placement)
        elif isinstance(placement, Redirect):
            yield placement.storage, placement.storage + placement.size
        elif isinstance(placement, TlsBlock):
            start = placement.address
            if placement.is_thread_pointer:
                start = table.processor.static_tls_start(placement.address, placement.size)
            yield start, start + placement.size


def _copied_data(table: RankTable, copy: Rebase) -> Iterator[Range]:
    if copy.object is None:
        yield copy.copy, copy.copy + copy.size
        return
    moved = copy.copy - copy.original
    for part in table.objects[copy.object].segments:
        start = table.objects[copy.object].base + part.offset
        if part.writable and copy.original <= start < copy.original + copy.size:
            yield start + moved, min(start + part.memory_size, copy.original + copy.size) + moved
