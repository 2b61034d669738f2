"""The arguments of the calls on a rank's stack: what was passed, or, where nothing tells, why.

Takes a walker and a rank; gives an argument by its frame and its place among the function's parameters. The
caller's debug information says what it passed, else the called function's says where it is; registers are as unwound.
Where a compiler kept neither, the answer says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional, Union

from pieglobalsfind.dwarf.argument_locations import ArgumentReader, CallsAt, Parameter, Passed
from pieglobalsfind.dwarf.expression import UnsupportedError
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent, Rank
from pieglobalsfind.stacks.frame_values import FrameScope, entry_value, value
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import Activation, Walker

INT, WORD = 4, 8
UNDESCRIBED = "its function has no debug information"
OTHER_SHAPE = Absent("its function has other parameters by its debug information")
UNKNOWN_CALLEE = Absent("its caller's does not say which function it calls")
NOT_PASSED = Absent("its caller's does not say what it passes")


@dataclass(frozen=True)
class Where:
    """An argument: the frame (innermost is 0), its place among the function's parameters, and how many these are."""

    frame: int
    place: int
    count: int


class RankStack:
    """One rank's stack at one moment."""

    def __init__(self, walker: Walker, activations: Sequence[Activation], memory: Memory) -> None:
        self._walker = walker
        self._activations = [
            _as_caller(activation) if level else activation for level, activation in enumerate(activations)
        ]
        self._memory = memory

    def __len__(self) -> int:
        return len(self._activations)

    def functions(self, frame: int) -> tuple[str, ...]:
        """The functions that are active in a frame, inlined ones first."""
        return tuple(call.function for call in self._walker.calls(self._activations[frame].lookup))

    def library(self, frame: int) -> str:
        """The program or library that a frame's function is in."""
        return self._walker.calls(self._activations[frame].lookup)[-1].library

    def integer(self, where: Where) -> Union[int, Absent]:
        """An `int` argument."""
        return self._number(where, False, INT)

    def word(self, where: Where) -> Union[int, Absent]:
        """An argument of 8 bytes, such as a pointer."""
        return self._number(where, False, WORD)

    def pointed_at(self, where: Where) -> Union[int, Absent]:
        """What an argument refers to, an `int`: Fortran passes all by reference."""
        return self._number(where, True, INT)

    def _number(self, where: Where, refers: bool, size: int) -> Union[int, Absent]:
        try:
            content = self._passed(where, WORD if refers else size)
            is_address = refers
            if isinstance(content, Absent):
                content, is_address = self._now(where, refers, size, content)
            if isinstance(content, Absent):
                return content
            if is_address:
                content = self._memory.read(int.from_bytes(content, "little"), INT)
            return int.from_bytes(content, "little", signed=size == INT)
        except UnsupportedError:
            return Absent("its debug information is of a kind that is not known here")
        except MemoryUnreadable:
            return Absent("where it was kept can't be read")

    # ---- what was passed ----

    def _passed(self, where: Where, size: int) -> Union[bytes, Absent]:
        """By the caller; an argument on the stack is the called function's to change."""
        places = self._activations[where.frame].processor.integer_arguments
        if where.place >= len(places) or where.frame + 1 >= len(self):
            return NOT_PASSED
        if not self._is_called_by_name(where.frame):
            return UNKNOWN_CALLEE
        return entry_value(places[where.place], size, self._frame(where.frame), as_register=True) or NOT_PASSED

    def _is_called_by_name(self, frame: int) -> bool:
        """Whether the caller says that it calls this very function: another one may have jumped here in its place."""
        reader, vaddr = self._reader(frame + 1), self._vaddr(frame + 1)
        callees = reader.callees(vaddr + 1) if reader is not None and vaddr is not None else frozenset()
        return plain(self.functions(frame)[-1]) in map(plain, callees)

    # ---- where it is ----

    def _now(self, where: Where, refers: bool, size: int, otherwise: Absent) -> tuple[Union[bytes, Absent], bool]:
        """What it is by the function's own debug information, and whether that is the address of what is wanted."""
        calls = self._calls(where.frame)
        if calls is None:
            return Absent(f"{UNDESCRIBED}, and {otherwise.reason}"), False
        parameters = list(calls.calls[-1].parameters.values())
        if len(parameters) != where.count:
            return OTHER_SHAPE, False
        parameter = parameters[where.place]
        is_address = refers and parameter.is_address
        data = self._value(parameter, WORD if is_address else size, self._frame(where.frame))
        return data if data is not None else Absent(f"it is optimized out, and {otherwise.reason}"), is_address

    def _value(self, parameter: Parameter, size: int, frame: FrameScope) -> Optional[bytes]:
        if parameter.constant is not None:
            return parameter.constant[:size]
        data = value(parameter.now, size, frame)
        return data if data is not None else entry_value(parameter.entry_register, size, frame)

    # ---- frames ----

    def _calls(self, frame: int) -> Optional[CallsAt]:
        reader, vaddr = self._reader(frame), self._vaddr(frame)
        return reader.calls(vaddr) if reader is not None and vaddr is not None else None

    def _vaddr(self, frame: int) -> Optional[int]:
        place = self._walker.place(self._activations[frame].lookup)
        return None if isinstance(place, Absent) else place[1]

    def _reader(self, frame: int) -> Optional[ArgumentReader]:
        place = self._walker.place(self._activations[frame].lookup)
        return None if isinstance(place, Absent) else self._walker.arguments(place[0])

    def _frame(self, frame: int) -> FrameScope:
        activation, calls = self._activations[frame], self._calls(frame)
        bias = activation.lookup - (self._vaddr(frame) or 0)
        base = calls.frame_base if calls is not None else ()
        return FrameScope(activation, self._memory, bias, base, lambda: self._call(frame))

    def _call(self, frame: int) -> Optional[tuple[Mapping[int, Passed], FrameScope]]:
        reader, vaddr = (self._reader(frame + 1), self._vaddr(frame + 1)) if frame + 1 < len(self) else (None, None)
        if reader is None or vaddr is None or not self._is_called_by_name(frame):
            return None
        return reader.passed(vaddr + 1), self._frame(frame + 1)


def stack_of(walker: Walker, rank: Rank) -> Optional[RankStack]:
    """A rank's stack, None if a frame of it is unknown; raises `RanklensError` as walking does.

    One that runs has it from its kernel thread's registers, as long as these are known.
    """
    if not rank.is_on_thread:
        walked = walker.activations(rank)
        return RankStack(walker, *walked) if walked is not None else None
    activations, memory, _ = walker.frames_from(rank.stack, walker.registers_now(rank))
    return RankStack(walker, activations, memory)


def plain(function: str) -> str:
    """A name without what makes it a profiling name: both are names of one function, in C and in Fortran."""
    return re.sub(r"^[Pp](?=[Mm][Pp][Ii]_)", "", function)


def _as_caller(activation: Activation) -> Activation:
    """With what a caller's registers are after its call."""
    processor = activation.processor
    kept = {*processor.call_preserved, processor.stack_pointer, processor.pc}
    preserved = {number: content for number, content in activation.registers.items() if number in kept}
    return replace(activation, registers=preserved)
