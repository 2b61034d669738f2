"""Backtraces of suspended user-level threads of any program, with or without ranks, by their saved contexts.

    >>> from pieglobalsfind import suspended
    >>> from pieglobalsfind.targets import open_target
    >>> suspended.backtrace(open_target(pid=4711), "fcontext", 0x7f3c5a1fef40).frames[0]
    Frame(level=0, pc=94013377434205, shows_pc=True, function='wait_for', arguments='', file='/home/u/fiber.cpp', ...)

Takes a target, the kind and the address of a context (docs/contexts.md); gives frames, innermost first. It neither
stops the target nor calls into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.saved_context import is_return_address, registers
from pieglobalsfind.elf.target_processor import processor_of_target
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.model import Evidence, RankTable, Region
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.frame import Backtrace, Frame
from pieglobalsfind.target import Target

NO_RANKS = RankTable("", "", 0, (), (), Evidence("runtime", "a program without ranks"))


def backtrace(target: Target, kind: str, address: int) -> Backtrace:
    """Where a thread goes on. Raises `UsageError` for an unknown kind, `RanklensError` if there is no such context."""
    return from_registers(moment_of(target), registers(target, kind, address))


def from_registers(moment: ProcessView, saved: Mapping[int, int]) -> Backtrace:
    """The frames of a stack from its saved registers on; raises `ObjectFileError` where libdw is missing."""
    processor = moment.table.processor
    pointer, pc = saved[processor.stack_pointer], saved[processor.pc]
    stack = mapping_at(moment.target.maps(), pointer)
    region = Region(pointer, stack.end - pointer) if stack is not None else Region(pointer, 0)
    calls, ends = moment.walker.frames(saved, region, is_return_address(moment.target, processor, pc))
    return Backtrace(tuple(_frames(calls)), ends)


def _frames(calls: tuple[tuple[int, Call], ...]) -> Iterator[Frame]:
    for level, (pc, call) in enumerate(calls):
        yield Frame(level, pc, True, call.function, "", call.file, call.line, "" if call.file else call.library)


def moment_of(target: Target) -> ProcessView:
    """The target as of now, whether it has ranks or not: code in ranks' copies is known only by them."""
    if has_ranks(target):
        return ProcessView(target, decode(target))
    return ProcessView(target, replace(NO_RANKS, processor=processor_of_target(target)))


def has_ranks(target: Target) -> bool:
    """Whether ranks can be found; contexts are read also where they can't."""
    try:
        decode(target)
    except RanklensError:
        return False
    return True
