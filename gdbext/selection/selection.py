"""Which rank GDB's own commands mean.

Takes a rank to select, or GDB's stop; keeps the rank, the reason, and what the unwinder and the filter need. A rank
runs if a thread's stack pointer lies in its stack, whatever the registry says: a switch takes several instructions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Optional

import gdb

from gdbext.gdb_api.processor import processor
from gdbext.gdb_api.run_commands import DebuggerError, execute, gdb_errors, set_convenience
from gdbext.gdb_api.target import is_core, is_selected, thread_registers
from gdbext.selection.unwinder import PAST_MAIN, FrameChain, RankFilter, RankUnwinder, chain, select_level
from pieglobalsfind.decoders.lazy_ranks import columns_of
from pieglobalsfind.model import EXITED, RUNNING, Absent, Rank, Region
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.no_stack import check_is_here, no_registers, no_registers_here

MAY_CALL = "may-call-functions"
NO_CALLS = "functions can be called only in a rank that runs"
INSTEAD = "`rank list --state running` lists them"
NO_RANK = -1
MOST_CALLERS = 64  # of frames in libraries, between the innermost one and the rank's code that called them
NOT_YET = "no rank has been looked at yet"


class Selection:
    """The selected rank, or none; `reason` follows "because"."""

    def __init__(self, unwinder: RankUnwinder, filter_: RankFilter) -> None:
        self._unwinder = unwinder
        self._filter = filter_
        self.rank: Optional[int] = None
        self.reason = NOT_YET
        self.stack: Optional[FrameChain] = None
        self.thread = 0
        self.inferior = 0
        self.forbids_calls = False  # what the user has not
        self._registers: dict[int, Mapping[int, int]] = {}  # of threads, since the last stop

    @property
    def is_suspended(self) -> bool:
        """Return whether the selected rank is a suspended one."""
        return self.stack is not None and self.stack.registers is not None

    def clear(self, reason: str) -> None:
        """Select no rank; `reason` follows "because"."""
        self._set(None, None, reason)

    def forget(self, reason: str) -> None:
        """The same, but the thread is still to be looked at."""
        self.clear(reason)
        self.thread = 0

    def choose(self, moment: ProcessView, number: int, reason: str) -> None:
        """Select a rank; a running one selects its thread too. Raises `UsageError` if it has no frames."""
        rank = moment.rank(number)
        self._set(number, stack_of(moment, rank), reason)

    def choose_registers(self, registers: Mapping[int, int], reason: str) -> FrameChain:
        """Select a stack that is not a rank's, by its saved registers."""
        frame = gdb.newest_frame()
        pointer, inferior = int(frame.read_register(processor().stack_pointer_name)), gdb.selected_inferior().num
        stack = FrameChain(NO_RANK, registers, Region(0, 0), frame.pc(), pointer, inferior)
        self._set(None, stack, reason)
        return stack

    def follow_thread(self, moment: ProcessView) -> None:
        """Select the rank that runs on GDB's thread, or none."""
        self._registers.clear()
        thread = gdb.selected_thread()
        if thread is None:
            self.clear("GDB has no thread")
            return
        rank, reason = rank_at(moment, stack_pointer()), f"it runs on the stopped thread {thread.num}"
        if rank is None:
            self.clear(f"none runs on thread {thread.num}")
            rank, reason = rank_by_code(moment), f"the stopped thread {thread.num} runs its code"
        if rank is not None:
            self._set(rank.rank, FrameChain(rank.rank, None, moment.entry), reason)

    def _set(self, rank: Optional[int], stack: Optional[FrameChain], reason: str) -> None:
        was_suspended = self.is_suspended
        if self.stack is not None and self.stack.needs_past_main:
            execute(f"set {PAST_MAIN} off")
        if stack is not None and stack.registers is not None and ends_at_main():
            stack = replace(stack, needs_past_main=True)
            execute(f"set {PAST_MAIN} on")
        self.rank, self.stack, self.reason = rank, stack, reason
        self.show()
        if self.is_suspended and self.thread not in self._registers:
            self._registers[self.thread] = thread_registers()
        if was_suspended or self.is_suspended:
            gdb.invalidate_cached_frames()

    def undo_register_writes(self) -> list[str]:
        """Give the thread its registers back, where GDB has written to them for a rank that is suspended; their names.

        GDB takes a register that some frame has not saved for the thread's own: it would change another rank's.
        """
        before = self._registers.pop(self.thread, {})  # writing them is not news
        if not before or not self.is_suspended:
            self._registers.clear()
            return []
        selected, newest = gdb.selected_frame(), gdb.newest_frame()
        names = processor().register_names
        changed = [number for number, value in thread_registers().items() if before.get(number) != value]
        if changed:
            newest.select()
            for number in changed:
                execute(f"set variable ${names[number]} = {before[number]:#x}")
            select_level(selected.level())
        self._registers[self.thread] = before
        return [names[number] for number in changed]

    def show(self) -> None:
        """Make the unwinder, the filter and `$_rank` tell the selection."""
        thread = gdb.selected_thread()
        self.inferior = gdb.selected_inferior().num
        self.thread = thread.global_num if thread is not None else 0
        self._unwinder.stack = self._filter.stack = self.stack
        if self.is_suspended:
            self._unwinder.register()
        self._filter.enabled = self.stack is not None
        self._permit_calls()
        set_convenience("_rank", -1 if self.rank is None else self.rank)

    def _permit_calls(self) -> None:
        """A function called from a suspended rank would run on another rank's stack: not while one is selected."""
        if self.is_suspended and not self.forbids_calls and gdb.parameter(MAY_CALL) and not is_core():
            execute(f"set {MAY_CALL} off")
            self.forbids_calls = True
        elif self.forbids_calls and not self.is_suspended:
            self.forbids_calls = False
            execute(f"set {MAY_CALL} on")

    @contextmanager
    def explaining_calls(self) -> Iterator[None]:
        """GDB's errors become `DebuggerError`; of calls that we have forbidden in our words."""
        try:
            with gdb_errors():
                yield
        except DebuggerError as error:
            if self.forbids_calls and MAY_CALL in error.sentence:
                raise DebuggerError(NO_CALLS, INSTEAD) from error
            raise


def ends_at_main() -> bool:
    """Whether GDB would not ask for the caller of the thread's own frame, as which a suspended rank poses.

    It asks for none of the `main` of what it takes for the program, where ranks run in that itself.
    """
    frame = gdb.newest_frame()
    return frame.name() == "main" and frame.older() is None


def stack_of(moment: ProcessView, rank: Rank) -> FrameChain:
    """Where the rank's frames are; GDB's thread is the rank's own afterwards if it runs."""
    check_is_here(rank)
    if switch_to_thread_of(moment, rank):
        return FrameChain(rank.rank, None, moment.entry)
    if isinstance(rank.context, Absent):
        raise no_registers_here(rank) if rank.address_space else no_registers(rank.rank, rank.context)
    registers = moment.contexts.registers(rank)
    frame = gdb.newest_frame()
    return FrameChain(rank.rank, registers, moment.entry, frame.pc(), stack_pointer(), gdb.selected_inferior().num)


def rank_at(moment: ProcessView, address: int) -> Optional[Rank]:
    """The rank in whose stack an address lies, or else the running one in whose other memory: signals may have a stack
    of their own there (sigaltstack(2)).
    """
    ranks = moment.table.ranks
    holding = (i for i, (start, end) in enumerate(columns_of(ranks).stacks) if start <= address < end)
    on_stack = next((ranks[index] for index in holding if ranks[index].state != EXITED), None)
    if on_stack is not None:
        return on_stack
    owner = moment.translator.owner(address).rank
    rank = None if owner is None else moment.rank(owner)
    return rank if rank is not None and rank.state == RUNNING else None


def rank_by_code(moment: ProcessView) -> Optional[Rank]:
    """The rank whose own code GDB's thread runs on a stack that is no rank's: a thread that the rank has started.

    Only in GDB's own frames of the thread: no suspended rank is selected.
    """
    with suppress(gdb.error):
        for frame in itertools.islice(chain(), MOST_CALLERS):
            owner = moment.translator.owner(frame.pc()).rank
            if owner is not None:
                return moment.rank(owner)
    return None


def stack_pointer() -> int:
    """The thread's, whichever of its frames is selected."""
    with gdb_errors():
        number, name = processor().stack_pointer, processor().stack_pointer_name
        return thread_registers({number: name})[number]


def switch_to_thread_of(moment: ProcessView, rank: Rank) -> bool:
    """Select the thread whose stack pointer lies in the rank's stack, as `rank_at` has it; False if it runs on none."""
    if isinstance(rank.stack, Absent):
        return False
    before = gdb.selected_thread()
    for thread in candidates(rank):
        if not is_selected(thread):
            thread.switch()
        pointer = stack_pointer()
        if pointer in rank.stack:
            return True
        runs_there = rank_at(moment, pointer) if rank.state == RUNNING else None
        if runs_there is not None and runs_there.rank == rank.rank:
            return True
    if before is not None and before.is_valid() and not is_selected(before):
        before.switch()
    return False


def candidates(rank: Rank) -> Iterator[gdb.InferiorThread]:
    """The threads that may run the rank, the likeliest first."""
    threads = gdb.selected_inferior().threads()
    own = [thread for thread in threads if rank.kernel_thread in thread.ptid[1:]]
    yield from own or threads
