"""Ranks' stacks without a debugger: registers from their contexts, frames by the files' own unwind tables.

Takes a target, its rank table, contexts and symbolizer; gives each rank's calls, outermost first, inlined ones too. A
rank's stack is read at once, rules and names are read once per place in a file, whichever rank is there. It neither
stops nor writes to anything; a rank of a running job is read while it stands still, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Optional, Union

from pieglobalsfind.decoders.registry.live_state import as_recorded, records_now, while_suspended
from pieglobalsfind.dwarf.cfi import CodeFile, Rules
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import SCAN, Absent, Rank, RankTable, Region
from pieglobalsfind.ranks.symbolize import Symbolizer, entry_of
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.stacks.call_tree import Call, own_call
from pieglobalsfind.stacks.code_places import CodePlaces, Place
from pieglobalsfind.stacks.running_registers import RunningRegisters
from pieglobalsfind.stacks.saved_registers import Contexts
from pieglobalsfind.stacks.signal_frame import interrupted, is_signal_return
from pieglobalsfind.stacks.stack_memory import CHUNK, Memory
from pieglobalsfind.stacks.unwind_cache import StackShape, Used, is_of, met_before, recognized, shape_of, window
from pieglobalsfind.target import Target

if TYPE_CHECKING:
    from pieglobalsfind.dwarf.argument_locations import ArgumentReader

MOST_FRAMES = 10_000
GROUP = 256  # ranks that are read together: as many stand still long enough
MOST_SHAPES = 16  # stacks that are recognized without a walk
MAIN = "main"
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class UnwoundStack:
    """A rank's calls, outermost first. `ends`: why the stack ends before `main`, "" if it does not."""

    rank: int
    calls: tuple[Call, ...]
    ends: str = ""


@dataclass(frozen=True)
class Activation:
    """One frame: its registers by DWARF number (those that are known), where its caller's frame begins (CFA).

    `lookup` is the address by which it is looked up in tables: of callers the return address less one.
    """

    lookup: int
    registers: dict[int, int]
    cfa: int
    processor: Processor

    @property
    def pc(self) -> int:
        """Return the frame's pc."""
        return self.registers[self.processor.pc]

    @property
    def stack_pointer(self) -> int:
        """Return the frame's stack pointer."""
        return self.registers[self.processor.stack_pointer]


class Walker:
    """The stacks of one moment's ranks."""

    def __init__(
        self, target: Target, table: RankTable, translator: Translator, contexts: Contexts, symbolizer: Symbolizer
    ) -> None:
        self._target = target
        self._table = table
        self._translator = translator
        self._contexts = contexts
        self._symbolizer = symbolizer
        self._running = RunningRegisters(target, table.processor)
        self._code = CodePlaces(target, table, translator, symbolizer)
        self._stacks: dict[tuple[Place, ...], tuple[Call, ...]] = {}
        self._shapes: list[StackShape] = []  # the one that was met last comes first

    def at_moment(self, target: Target, table: RankTable, contexts: Contexts) -> Walker:
        """The same for a later moment of a process whose code lies where it did; names and rules are kept."""
        later = copy(self)
        later._target, later._table, later._contexts = target, table, contexts
        later._running = RunningRegisters(target, table.processor)
        later._code = self._code.at_moment(target, table)
        return later

    @property
    def known_stacks(self) -> int:
        """How many different stacks it keeps the names of."""
        return len(self._stacks)

    @cached_property
    def _entry(self) -> Region:
        return entry_of(self._table, self._translator, self._symbolizer)

    def stack(self, rank: Rank) -> UnwoundStack:
        """Where a rank is; raises `RanklensError` if it has no registers, or never stands still."""
        return while_suspended(self._target, self._table, rank, self._walked)[1]

    def stacks(self, ranks: Sequence[Rank]) -> Iterator[tuple[Rank, Union[UnwoundStack, RanklensError]]]:
        """`stack` of many, in any order: those that are alike are read together, some hundred at once."""
        for first in range(0, len(ranks), GROUP):
            left, alone = list(ranks[first : first + GROUP]), 1
            while left:
                alike = self._alike(left)
                yield from ((rank, UnwoundStack(rank.rank, alike[rank.rank])) for rank in left if rank.rank in alike)
                left = [rank for rank in left if rank.rank not in alike]
                for rank in left[:alone]:
                    yield rank, self._stack_or_why(rank)
                left, alone = left[alone:], 2 * alone  # where none is like another, reading together is for nothing
        self._code.keep()

    def _stack_or_why(self, rank: Rank) -> Union[UnwoundStack, RanklensError]:
        try:
            return self.stack(rank)
        except RanklensError as error:
            return error

    def _alike(self, ranks: Sequence[Rank]) -> dict[int, tuple[Call, ...]]:
        """The calls of suspended ranks whose stacks were met before, and that stood still while all were read."""
        if not self._shapes:
            return {}
        if not self._target.is_live:
            return recognized(self._target, self._contexts, ranks, self._shapes)
        published = [rank for rank in ranks if rank.record]
        before = records_now(self._target, self._table, published)
        now = self._as_recorded(published, before)
        calls_of = recognized(self._target, self._contexts, now, self._shapes)
        wanted = [(rank, record) for rank, record in zip(published, before) if rank.rank in calls_of]
        after = records_now(self._target, self._table, [rank for rank, _ in wanted])
        return {rank.rank: calls_of[rank.rank] for (rank, record), later in zip(wanted, after) if later == record}

    def _as_recorded(self, ranks: Sequence[Rank], records: Sequence[Optional[bytes]]) -> list[Rank]:
        recorded = []
        for rank, record in zip(ranks, records):
            if record is not None:
                with suppress(RanklensError):
                    recorded.append(as_recorded(self._table, rank, record))
        return recorded

    def _walked(self, rank: Rank) -> UnwoundStack:
        """A rank's stack; a suspended one's is one that was met before, or walked again."""
        if rank.is_on_thread:
            return self._named_calls(rank, *self._pcs_of_thread(rank))
        registers = self._contexts.saved(rank)
        calls = self._recognized(rank, registers)
        if calls is not None:
            return UnwoundStack(rank.rank, calls)
        kept: list[dict[int, int]] = []
        pcs, ends = self._walk(rank.stack, registers, None, kept)
        walked = self._named_calls(rank, pcs, ends)
        if not ends and not walked.ends and isinstance(rank.stack, Region):
            self._remember(rank, pcs, [*kept, registers], walked.calls)
        return walked

    def shape_now(self, rank: Rank) -> Optional[StackShape]:
        """The shape of a suspended rank's stack, if it is among the last shapes."""
        registers = self._contexts.saved(rank)
        address, size = window(rank, registers, self._shapes)
        if not size:
            return None
        words = memoryview(self._target.read(address, size)).cast("Q")
        return next((shape for shape in self._shapes if is_of(shape, rank, registers, words)), None)

    def _recognized(self, rank: Rank, registers: dict[int, int]) -> Optional[tuple[Call, ...]]:
        address, size = window(rank, registers, self._shapes)
        if size:
            with suppress(MemoryUnreadable):
                return met_before(self._shapes, rank, registers, self._target.read(address, size))
        return None

    def frames(
        self, registers: Mapping[int, int], stack: Region, is_call: bool
    ) -> tuple[tuple[tuple[int, Call], ...], str]:
        """A stack that goes on from saved registers, no rank's: (pc, call) innermost first, and why it ends early.

        `is_call`: the saved pc is where a call returns to.
        """
        pcs, ends = self._walk(stack, dict(registers), is_call=is_call)
        calls: list[tuple[int, Call]] = []
        for at, pc in enumerate(pcs):
            for call in self._code.calls(pc):
                calls.append((pc + (at > 0 or is_call), call))
                if call.function == MAIN:
                    return tuple(calls), ""
        return tuple(calls), ends

    def activations(self, rank: Rank) -> Optional[tuple[list[Activation], Memory]]:
        """The frames of a suspended rank, innermost first, down to its entry; None if some are unknown."""
        if rank.is_on_thread:
            return None
        activations, memory, ends = self.frames_from(rank.stack, self._contexts.registers(rank))
        return None if ends else (activations, memory)

    def registers_now(self, rank: Rank) -> Mapping[int, int]:
        """What a rank has saved, or its kernel thread's while it runs; raises `RanklensError` as `stack` does.

        They are of one moment with what else is read only inside of `while_suspended`.
        """
        return self._running.registers(rank) if rank.is_on_thread else self._contexts.saved(rank)

    def stack_pointer_now(self, rank: Rank) -> int:
        """The stack pointer among `registers_now`, 0 if it is unknown."""
        return self.registers_now(rank).get(self._table.processor.stack_pointer, 0)

    def frames_from(
        self, stack: Union[Region, Absent], first: Mapping[int, int]
    ) -> tuple[list[Activation], Memory, str]:
        """The frames from some registers on, innermost first, the stack's memory, and why they end early, or ""."""
        memory, kept, registers = Memory(self._target, stack), list[dict[int, int]](), dict(first)
        pcs, ends = self._walk(stack, registers, memory, kept)
        processor = self._table.processor
        outer = [frame_registers[processor.stack_pointer] for frame_registers in (*kept[1:], registers)]
        return (
            [Activation(pc, frame_registers, cfa, processor) for pc, frame_registers, cfa in zip(pcs, kept, outer)],
            memory,
            ends,
        )

    def place(self, pc: int) -> Place:
        """The file that code is from, and its p_vaddr there."""
        return self._code.place(pc)

    def calls(self, pc: int) -> tuple[Call, ...]:
        """The calls at an address of code, inlined ones first; one without a name where nothing is known."""
        return self._code.calls(pc)

    def file(self, path: str) -> Optional[CodeFile]:
        """A file's tables, None if it can't be opened."""
        return self._code.file(path)

    def arguments(self, path: str) -> Optional[ArgumentReader]:
        """Where a file's functions have their arguments, None if it can't be opened."""
        return self._code.arguments(path)

    def location(self, rank: Rank, is_call: Callable[[str, str], bool]) -> Optional[Call]:
        """The innermost call in the program's own copy, None if there is none; raises as `stack` does.

        `is_call` says of a function there, and the one that it has called, whether it is the runtime's all the same.
        What the C++ library's templates have made in the program is passed over as long as it has a caller.
        """
        pcs, _ = self._pcs(rank)
        inner, library = "", None
        for pc in pcs:
            owner = self._translator.owner(pc)
            is_own = owner.rank in (rank.rank, None)  # all ranks may use one copy
            calls = self._code.calls(pc)
            is_program = owner.object is not None and self._table.objects[owner.object].is_program
            if is_own and is_program and not is_call(calls[-1].function, inner):
                own = own_call(calls)
                if own is not None:
                    return own
                library = library or calls[0]
            inner = calls[-1].function
        return library

    def _pcs(self, rank: Rank) -> tuple[list[int], str]:
        def walked(now: Rank) -> tuple[list[int], str]:
            if now.is_on_thread:
                return self._pcs_of_thread(now)
            return self._walk(now.stack, self._contexts.saved(now))

        return while_suspended(self._target, self._table, rank, walked)[1]

    def _pcs_of_thread(self, rank: Rank) -> tuple[list[int], str]:
        """Of a rank that runs, by its kernel thread, as long as that neither goes on nor leaves the rank's stack."""
        registers = self._running.registers(rank)
        walked = self._walk(rank.stack, dict(registers))
        if self._target.is_live and self._running.registers(rank) != registers:
            raise RanklensError(f"rank {rank.rank} went on while it was read", "stop the job with a debugger")
        if rank.evidence.tier == SCAN and not any(self._translator.owner(pc).rank == rank.rank for pc in walked[0]):
            raise RanklensError(f"rank {rank.rank} is running, its thread's stack does not come from its code")
        return walked

    # ---- walking ----

    def _walk(
        self,
        stack: Union[Region, Absent],
        registers: dict[int, int],
        memory: Optional[Memory] = None,
        kept: Optional[list[dict[int, int]]] = None,
        is_call: bool = False,
    ) -> tuple[list[int], str]:
        """The pcs, innermost first (of callers the return address less one), and why the walk ended early.

        `kept` receives every frame's registers; `registers` are those of the caller of the last one afterwards.
        """
        processor, memory = self._table.processor, memory or Memory(self._target, stack)
        pcs: list[int] = []
        while len(pcs) < MOST_FRAMES:
            pc = registers[processor.pc]
            if pc - is_call in self._entry:  # it may end in the call, which never returns
                return pcs, ""
            pcs.append(pc - is_call)
            if kept is not None:
                kept.append(dict(registers))
            rules = self._code.rules(pc - is_call)
            if rules is None and is_signal_return(processor, memory, pc):
                try:
                    caller = interrupted(processor, memory, registers[processor.stack_pointer])
                except MemoryUnreadable:
                    return pcs, f"the frame at {pc:#x} can't be read"
                self._code.signal_returns.add(pc)
                pcs[-1] = pc
                registers.clear()
                registers.update(caller)
                is_call = False
                continue
            if rules is None:
                place = self._code.place(pc - is_call)
                why = f", {place.reason}" if isinstance(place, Absent) else ""
                return pcs, f"there is no unwind information for {pc:#x}{why}"
            if rules.is_last:
                return pcs, ""
            if rules.cfa_register not in registers:  # of a thread that runs, Linux tells two registers
                when = "known only while the process stands still" if self._target.is_live else "unknown"
                return pcs, f"the caller of the frame at {pc:#x} is found by a register that is {when}"
            try:
                if not _go_to_caller(processor, registers, rules, memory, is_call):
                    return pcs, f"the frame at {pc:#x} is invalid"
            except MemoryUnreadable:
                return pcs, f"the frame at {pc:#x} can't be read"
            is_call = True
        return pcs, f"it has more than {MOST_FRAMES} frames"

    def _remember(self, rank: Rank, pcs: list[int], kept: Sequence[dict[int, int]], calls: tuple[Call, ...]) -> None:
        """Keep what a whole walk used; `kept` are the registers of every frame and of the last one's caller."""
        processor = self._table.processor
        frames: list[Used] = []
        words: dict[int, int] = {}
        for pc, caller in zip(pcs, kept[1:]):
            rules = self._code.rules(pc)
            if rules is None:  # a signal's frame, whose caller is found by more than a shape holds
                return
            if rules.is_last:
                break
            if processor.return_address not in dict(rules.saved):  # in a register, which a shape does not hold
                return
            cfa = caller[processor.stack_pointer]
            saved = tuple((register, cfa + offset) for register, offset in rules.saved)
            words.update((address, caller[register]) for register, address in saved)
            frames.append((rules.cfa_register, saved))
        shape = shape_of(processor, rank, kept[0], frames, words, calls)
        if shape.extent <= CHUNK:
            self._shapes = [shape, *self._shapes[: MOST_SHAPES - 1]]

    # ---- naming ----

    def _named_calls(self, rank: Rank, pcs: list[int], ends: str) -> UnwoundStack:
        key = tuple(map(self._code.place, pcs))
        if key not in self._stacks:
            self._stacks[key] = self._all_calls(pcs)
        calls = self._stacks[key]
        return UnwoundStack(rank.rank, calls, "" if calls and calls[0].function == MAIN else ends)

    def _all_calls(self, pcs: list[int]) -> tuple[Call, ...]:
        calls: list[Call] = []
        for pc in pcs:
            for call in self._code.calls(pc):
                calls.append(call)
                if call.function == MAIN:
                    return tuple(reversed(calls))
        return tuple(reversed(calls))


def _go_to_caller(processor: Processor, registers: dict[int, int], rules: Rules, memory: Memory, is_call: bool) -> bool:
    """Make `registers` the caller's; False if they are unknown.

    The innermost frame of a processor with a link register may have nothing on the stack.
    """
    cfa, pointer = (registers[rules.cfa_register] + rules.cfa_offset) & _MASK, registers[processor.stack_pointer]
    is_leaf = not is_call and not processor.pushes_return_address
    if cfa < pointer or (cfa == pointer and not is_leaf):
        return False
    for register, offset in rules.saved:
        registers[register] = memory.word(cfa + offset)
    if processor.return_address not in registers:
        return False
    registers[processor.pc] = registers[processor.return_address] & processor.code_mask
    registers[processor.stack_pointer] = cfa
    return True
