"""What a runtime's registry lacks or contradicts, for the author of that runtime.

Takes a target that stands still; gives findings, each with what does not work and what to write instead. It reads what
the registry says by the same code as every tool, and compares it with the target's memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pieglobalsfind.decoders.registry import decode as registry
from pieglobalsfind.decoders.registry.layout import OBJECT_PRIVATIZED, OBJECT_PROGRAM, SYMBOL, Records, path_text, text
from pieglobalsfind.decoders.registry.read_consistent import Snapshot, exported, take
from pieglobalsfind.decoders.registry.validate import check
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import NotVirtualizedError, ObjectFileError, RanklensError, RegistryError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import BLOCKED, HOOK, READY, RUNNING, Absent, Object, Rank, Region, Unplaced
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.unwind import UnwoundStack
from pieglobalsfind.target import Target

CONTRADICTION, LACK, NOTE = "contradiction", "lack", "note"
ADDRESS = re.compile(r"0x[0-9a-f]+")
SEVERITIES = (CONTRADICTION, LACK, NOTE)


@dataclass(frozen=True)
class RegistryFinding:
    """`where`: the part of the registry. `what` is wrong or missing, with what does not work. `cure`: what to write.

    A contradiction is against the target's memory or the registry itself. Of a lack a feature suffers that every
    runtime can have; a note is about a feature that some runtimes do not need.
    """

    severity: str
    where: str
    what: str
    cure: str


def findings(target: Target) -> list[RegistryFinding]:
    """All findings, contradictions first; raises `NotVirtualizedError` if the target has no registry."""
    try:
        snapshot = take(target)
        if snapshot is None:
            raise NotVirtualizedError(
                f"{target.description} has no registry", "call rank_hooks_create(), see docs/abi.md: Writing"
            )
        check(snapshot.records)
        table = registry.decode(target)
    except RegistryError as error:
        return [RegistryFinding(CONTRADICTION, "registry", error.sentence, error.hint)]
    assert table is not None
    view = ProcessView(target, table)
    registry_findings = [
        *_header(view, snapshot),
        *_objects(view, snapshot.records),
        *_contexts(view),
        *_ranks(view, snapshot),
    ]
    return sorted(registry_findings, key=lambda finding: SEVERITIES.index(finding.severity))


# ---- the header ----


def _header(view: ProcessView, snapshot: Snapshot) -> Iterator[RegistryFinding]:
    header, table = snapshot.records.header, view.table
    if snapshot.torn:
        what = f"generation is {header.generation}, odd, while nothing runs: the writer stopped inside of a change"
        yield RegistryFinding(CONTRADICTION, "header", what, "call rank_hooks_commit() after each rank_hooks_begin()")
    if not any(True for _ in exported(view.target, view.target.maps(), SYMBOL)):
        what = "no exported symbol rank_debug_registry leads to it: readers search for its mapping by name"
        yield RegistryFinding(NOTE, "header", what, "link the executable with -rdynamic")
    if not text(header.method):
        yield RegistryFinding(NOTE, "header", "method is empty: reports have no name for it", "copy a name to it")
    if not text(header.runtime):
        yield RegistryFinding(NOTE, "header", "runtime is empty: reports have no name for it", "copy a name to it")
    if header.process_count == 1 and len(table.ranks) < table.rank_count:
        what = f"rank_count is {table.rank_count} in a job of one process, and {len(table.ranks)} ranks have a record"
        yield RegistryFinding(CONTRADICTION, "header", what, "add a record for each rank, or set process_count")
    if not table.entry_function:
        what = "entry_function is 0: backtraces continue past the function where every rank begins"
        yield RegistryFinding(LACK, "header", what, "write its address; its symbol tells its size")
    elif not view.entry.size:
        what = f"entry_function_size is 0, and no symbol covers {table.entry_function:#x}: backtraces do not end there"
        yield RegistryFinding(LACK, "header", what, "write the size, or keep the runtime's symbols")
    for name, address in (("entry_function", table.entry_function), ("event_function", table.event_function)):
        mapping = mapping_at(view.target.maps(), address) if address else None
        if address and (mapping is None or not mapping.executable):
            yield RegistryFinding(
                CONTRADICTION, "header", f"{name} {address:#x} is not an address of code", "write a function's"
            )


# ---- objects ----


def _objects(view: ProcessView, records: Records) -> Iterator[RegistryFinding]:
    cure = "describe the program by rank_hooks_add_program()"
    if not records.objects:
        yield RegistryFinding(
            LACK, "objects", "there are none: readers have no symbols, no stacks and no globals", cure
        )
    elif not any(object_record.flags & OBJECT_PROGRAM for object_record in records.objects):
        what = "none has the flag PROGRAM: stacks show no frame of the program, all are folded as the runtime's"
        yield RegistryFinding(LACK, "objects", what, "set RANK_DEBUG_OBJECT_PROGRAM on the user's program")
    copied = {copy.object for copy in records.copies}
    for number, (elf_object, record) in enumerate(zip(view.table.objects, records.objects)):
        where = f"object {number} ({path_text(records.strings[record.path : record.path + 4096]).rpartition('/')[2]})"
        if number in copied and not record.flags & OBJECT_PRIVATIZED:
            what = "ranks have copies of it, and it lacks the flag PRIVATIZED: no tool shows its globals"
            yield RegistryFinding(LACK, where, what, "set RANK_DEBUG_OBJECT_PRIVATIZED")
        yield from _object(view.target, elf_object, where)


def _object(target: Target, elf_object: Object, where: str) -> Iterator[RegistryFinding]:
    """Against the ELF header in memory, and against the file."""
    cure = "describe it by rank_hooks_add_program()"
    try:
        elf = LoadedElf(target.read, elf_object.base)
    except (ObjectFileError, RanklensError):
        yield RegistryFinding(CONTRADICTION, where, f"no ELF header is at its base {elf_object.base:#x}", cure)
        return
    if not elf_object.build_id:
        lost = "no stacks and no values: readers use no file that they can't identify"
        why = f"build_id_size is 0, its memory has the build-id {elf.build_id.hex()}: {lost}"
        if elf.build_id:
            yield RegistryFinding(LACK, where, why, cure)
        else:
            yield RegistryFinding(LACK, where, f"it has no build-id: {lost}", "link it with -Wl,--build-id")
    elif elf.build_id and elf.build_id != elf_object.build_id:
        what = f"its build-id is {elf_object.build_id.hex()}, and {elf.build_id.hex()} in memory"
        yield RegistryFinding(CONTRADICTION, where, what, cure)
    extents = tuple(
        (segment.vaddr - elf.low, segment.memory_size, segment.file_size, segment.flags & 7) for segment in elf.segments
    )
    published = tuple(
        (segment.offset, segment.memory_size, segment.file_size, segment.protection) for segment in elf_object.segments
    )
    if extents and sorted(published) != sorted(extents):
        what = f"its {len(published)} segments are not the {len(extents)} PT_LOADs of its program headers"
        yield RegistryFinding(CONTRADICTION, where, what, cure)
    for name, value, right in (("load_bias", elf_object.load_bias, elf.load_bias), ("span", elf_object.span, elf.span)):
        if extents and value != right:
            yield RegistryFinding(
                CONTRADICTION, where, f"{name} is {value:#x}, by its program headers {right:#x}", cure
            )
    path = object_path(target, identity_of(elf_object))
    if isinstance(path, Absent) and elf_object.build_id:
        yield RegistryFinding(LACK, where, f"{path.reason}: no symbols, lines and types of it", path.hint)


# ---- contexts ----


def _contexts(view: ProcessView) -> Iterator[RegistryFinding]:
    numbers = {register_rule.dwarf_register for register_rule in view.table.context_layout}
    cure = "add a rank_hooks_add_context_register() for each register that a switch saves"
    if not numbers:
        what = "there are none: suspended ranks have no stacks"
        yield RegistryFinding(LACK, "context_registers", what, cure)
    elif not numbers.issuperset((view.table.processor.stack_pointer, view.table.processor.pc)):
        what = f"registers {compact(numbers)} hold no stack pointer or no pc: suspended ranks have no stacks"
        yield RegistryFinding(LACK, "context_registers", what, cure)
    if len(numbers) < len(view.table.context_layout):
        yield RegistryFinding(CONTRADICTION, "context_registers", "a register is listed twice", "add each one once")


# ---- ranks ----


def _ranks(view: ProcessView, snapshot: Snapshot) -> Iterator[RegistryFinding]:
    """Each kind of finding once, with the ranks that have it."""
    together = Together()
    records = {rank.rank: rank for rank in snapshot.records.ranks}
    threads = {thread.tid for thread in view.target.threads()}
    by_hook = view.table.evidence.tier == HOOK  # states and contexts are the runtime's own words then
    for rank in view.table.ranks:
        for severity, what, cure in (
            *_images(view, rank),
            *(() if by_hook else _state(rank, bool(records[rank.rank].context), threads)),
            *_waiting(view, rank),
        ):
            together.add(rank.rank, severity, what, cure)
    for number, reason in _bad_stacks(view).items():
        cure = "compare the context's layout with what the switch saves"
        together.add(number, CONTRADICTION, reason, cure)
    yield from together.findings()


class Together:
    """Findings that differ in addresses alone are one, with all its ranks and the first rank's addresses."""

    def __init__(self) -> None:
        self._ranks: dict[tuple[str, str], list[int]] = {}
        self._first: dict[tuple[str, str], tuple[str, str]] = {}

    def add(self, rank: int, severity: str, what: str, cure: str) -> None:
        """Add what was found for a rank; equal findings of several ranks become one."""
        key = severity, ADDRESS.sub("", what)
        self._ranks.setdefault(key, []).append(rank)
        self._first.setdefault(key, (what, cure))

    def findings(self) -> Iterator[RegistryFinding]:
        """Yield the findings, each for all its ranks."""
        for key, ranks in self._ranks.items():
            what, cure = self._first[key]
            several = len(ranks) > 1
            example = f" (rank {ranks[0]})" if several and ADDRESS.search(what) else ""
            yield RegistryFinding(key[0], f"rank{'s' if several else ''} {compact(ranks)}", f"{what}{example}", cure)


def _images(view: ProcessView, rank: Rank) -> Iterator[tuple[str, str, str]]:
    if isinstance(rank.stack, Absent):
        yield LACK, "it has no stack: no address in it is the rank's, and no frames", "write stack_start and stack_size"
    else:
        first, last = (mapping_at(view.target.maps(), at) for at in (rank.stack.start, rank.stack.end - 1))
        if first is None or last is None or not last.writable:
            yield CONTRADICTION, "its stack is not writable memory", "write its lowest usable byte and its size"
    if isinstance(rank.heap, Absent):
        yield NOTE, "it has no heap: payload and pointer checks leave heaps out", "write heap_start and heap_size"
    yield from (
        (CONTRADICTION, placement.reason, "add one copy of each object, after the memory has been copied")
        for placement in rank.placements
        if isinstance(placement, Unplaced)
    )
    if not rank.placements:
        yield LACK, "it has nothing of its own: its globals are shown as shared", "add its copies, TLS or redirections"


def _state(rank: Rank, has_context: bool, threads: Iterable[int]) -> Iterator[tuple[str, str, str]]:
    if rank.state == RUNNING and has_context:
        yield CONTRADICTION, "it is RUNNING, and context is not 0", "store 0 before it runs"
    if rank.state in (READY, BLOCKED) and not has_context:
        yield CONTRADICTION, f"it is {rank.state.upper()}, and context is 0", "store context once registers are saved"
    if rank.state in (READY, BLOCKED, RUNNING) and not rank.kernel_thread:
        yield LACK, "kernel_thread is 0: debuggers can't tell on which thread it runs", "write its scheduler's tid"
    elif rank.kernel_thread and not rank.address_space and rank.kernel_thread not in threads:
        yield CONTRADICTION, f"there is no thread {rank.kernel_thread}", "write the tid of its scheduler's thread"


def _waiting(view: ProcessView, rank: Rank) -> Iterator[tuple[str, str, str]]:
    waiting = rank.waiting
    if waiting is None or rank.state not in (READY, BLOCKED):
        return
    if waiting.peer >= view.table.rank_count:
        yield CONTRADICTION, f"it waits for rank {waiting.peer}, which the job has not", "write -1 for any, -2 for none"
    elif waiting.peer >= 0 and not view.in_world(rank).waiting.in_world:  # type: ignore[union-attr]
        what = f"it waits for a rank of communicator {waiting.communicator}, whose members no rank publishes"
        yield LACK, f"{what}: no deadlock is found", "write wait_members, or communicator 0 for MPI_COMM_WORLD"


def _bad_stacks(view: ProcessView) -> Mapping[int, str]:
    """Why suspended ranks' stacks do not reach the function where every rank begins."""
    suspended = [rank for rank in view.table.ranks if rank.state in (READY, BLOCKED) and isinstance(rank.context, int)]
    if not view.table.context_layout:
        return {}
    return {rank.rank: why for rank, why in _ends(view, suspended) if why}


def _ends(view: ProcessView, ranks: list[Rank]) -> Iterator[tuple[Rank, str]]:
    shortened: Callable[[Rank, str], str] = lambda rank, sentence: sentence.replace(f"rank {rank.rank}", "the rank")  # noqa: E731
    for rank, walked in view.walker.stacks(ranks):
        if isinstance(walked, UnwoundStack):
            yield rank, f"its stack does not reach the entry function, {walked.ends}" if walked.ends else ""
        elif isinstance(rank.stack, Region):
            yield rank, shortened(rank, walked.sentence)
