"""What the words of a rank's stack are: variables of its frames, addresses that calls return to, saved registers.

Takes the frames of a stack that stands still; goes by the debug information of the objects that ranks have copies of.
What lies in other frames is the runtime's, and is named by the frame's function alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.argument_locations import Step, Steps
from pieglobalsfind.dwarf.expression import UnsupportedError
from pieglobalsfind.dwarf.locals import Local, LocalReader
from pieglobalsfind.dwarf.types import TypeTable
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Absent
from pieglobalsfind.stacks.frame_values import FrameScope, NowhereError, address
from pieglobalsfind.stacks.stack_memory import Memory
from pieglobalsfind.stacks.unwind import Activation, Walker

from ..job.job import Job
from ..terminal.text import harmless
from ..values.layout import leaves_at
from .ground import AMBIGUOUS, PROVEN, UNTYPED, Ground
from .object_evidence import mangled_jump_words
from .typed_heap_objects import LARGEST_OBJECT, Typed
from .words import WORD

MOST_VARIABLES = 100_000  # of one stack
MOST_LARGE = 1_000
MOST_MEMBERS = 1_000  # of one piece of a variable
LARGE, NEAR = 1 << 14, 1 << 8  # bytes: variables that are looked for one by one, and how near others are to others
RETURNS = "the address that a call returns to"


class StackEvidence:
    """What is known of one stack: its frames, innermost first, their variables, and where calls return to."""

    def __init__(self) -> None:
        self.variables: list[Typed] = []
        self.returns: dict[int, str] = {}  # by the place of the address, the function that returns
        self._starts: list[int] = []  # of frames, ascending
        self._functions: list[str] = []
        self._near: dict[int, list[Typed]] = {}  # by the address of what is around, rounded down
        self._large: list[Typed] = []

    def add_frame(self, start: int, function: str) -> None:
        """A frame further out than all that were added before."""
        self._starts.append(start)
        self._functions.append(function)

    def add(self, typed: Typed) -> None:
        """A variable of the frame that was added last."""
        if len(self.variables) >= MOST_VARIABLES:
            return
        self.variables.append(typed)
        if typed.size > LARGE:
            self._large += [typed] if len(self._large) < MOST_LARGE else []
            return
        for place in range(typed.address // NEAR, (typed.end - 1) // NEAR + 1):
            self._near.setdefault(place, []).append(typed)

    def ground(self, address: int) -> Ground:
        """What the word at an address is."""
        if address in self.returns:
            return Ground(PROVEN, RETURNS, f"return address of {self.returns[address]}", "")
        around = (*self._near.get(address // NEAR, ()), *self._large)
        grounds = [variable.ground(address) for variable in around if variable.address <= address < variable.end]
        if len({ground.kind for ground in grounds}) > 1:
            first = grounds[0]
            return Ground(AMBIGUOUS, "DWARF: variables of several types share it", first.symbol, first.type)
        return grounds[0] if grounds else Ground(UNTYPED, f"{self._place(address)}, where no variable is known")

    def _place(self, address: int) -> str:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return "among the registers that the rank has saved"
        return f"on the stack, in the frame of {self._functions[index]}"


class StackVariables:
    """Looks at stacks of one job."""

    def __init__(self, job: Job, walker: Walker) -> None:
        self._job = job
        self._walker = walker
        self._readers: dict[str, Optional[LocalReader]] = {}
        self._copied = {elf_object.index for elf_object in job.privatized}

    def of(self, frames: list[Activation], memory: Memory, saved: Mapping[int, int]) -> StackEvidence:
        """The evidence for a stack; `saved` are the places of registers that the rank has saved, by DWARF number."""
        stack_evidence, homes, function = StackEvidence(), dict(saved), "the frame that it left"
        processor = self._job.table.processor
        if processor.pc in homes:
            stack_evidence.returns[homes[processor.pc]] = harmless(self._function(frames[0])) if frames else function
        for frame in frames:
            function = harmless(self._function(frame))
            stack_evidence.add_frame(frame.stack_pointer, function)
            if self._job.translator.owner(frame.lookup).object in self._copied:
                for variable in self._variables(frame, memory, homes):
                    stack_evidence.add(variable)
            for register, place in self._saved_by(frame):
                homes[register] = place
                if register == processor.return_address:
                    stack_evidence.returns[place] = function
        return stack_evidence

    def _function(self, frame: Activation) -> str:
        return self._walker.calls(frame.lookup)[0].function

    def _saved_by(self, frame: Activation) -> Iterator[tuple[int, int]]:
        """Where a frame has saved its caller's registers."""
        place = self._walker.place(frame.lookup)
        file = None if isinstance(place, Absent) else self._walker.file(place[0])
        rules = file.rules(place[1]) if file is not None and not isinstance(place, Absent) else None
        for register, offset in rules.saved if rules is not None else ():
            yield register, frame.cfa + offset

    def _variables(self, frame: Activation, memory: Memory, homes: Mapping[int, int]) -> Iterator[Typed]:
        place = self._walker.place(frame.lookup)
        reader = None if isinstance(place, Absent) else self._reader(place[0])
        locals_at = reader.at(place[1]) if reader is not None and not isinstance(place, Absent) else None
        if reader is None or locals_at is None or isinstance(place, Absent):
            return
        around = FrameScope(frame, memory, frame.lookup - place[1], locals_at.frame_base, lambda: None)
        mangled = mangled_jump_words(self._job.table.processor)
        for variable in locals_at.variables:
            if any(step.atom == dw.DW_OP_piece for step in variable.steps):
                yield from in_pieces(variable, reader.types, around, homes, mangled)
                continue
            size, start = reader.types.size(variable.type), place_of(variable.steps, around, homes)
            in_register = is_register(variable.steps[0])
            if start is not None and 0 < size <= (WORD if in_register else LARGEST_OBJECT):
                yield Typed(start, reader.types, variable.type, harmless(variable.name), variable.language, mangled)

    def _reader(self, path: str) -> Optional[LocalReader]:
        if path not in self._readers:
            file = self._walker.file(path)
            self._readers[path] = LocalReader(file) if file is not None else None
        return self._readers[path]


def place_of(steps: Steps, frame: FrameScope, homes: Mapping[int, int]) -> Optional[int]:
    """Where a variable is: in memory, or where the register that has it was saved; None if nowhere, or unknown."""
    try:
        if len(steps) == 1 and is_register(steps[0]):
            return homes.get(steps[0].atom - dw.DW_OP_reg0)
        return address(steps, frame)
    except (UnsupportedError, NowhereError, MemoryUnreadable):
        return None


def in_pieces(
    local: Local, types: TypeTable, frame: FrameScope, homes: Mapping[int, int], mangled: frozenset[int]
) -> Iterator[Typed]:
    """The members of a variable that lies in several places (DWARF 5, 2.6.1.2), those that are whole in one piece.

    Members of unions are left out: which of them is meant is not known.
    """
    for steps, offset, span in pieces(local.steps):
        start = place_of(steps, frame, homes) if span <= (WORD if is_register(steps[0]) else LARGEST_OBJECT) else None
        if start is None:
            continue
        for leaf in leaves_at(types, local.type, offset, span)[:MOST_MEMBERS]:
            if offset <= leaf.offset and 0 < leaf.size <= offset + span - leaf.offset and not leaf.in_union:
                name = harmless(local.name + leaf.path)
                yield Typed(start + leaf.offset - offset, types, leaf.type, name, local.language, mangled)


def pieces(steps: Steps) -> Iterator[tuple[Steps, int, int]]:
    """How to find each piece that is anywhere, where in the variable it begins, and of how many bytes it is."""
    offset, begin = 0, 0
    for at, step in enumerate(steps):
        if step.atom == dw.DW_OP_piece:
            if at > begin:
                yield steps[begin:at], offset, step.number
            offset, begin = offset + step.number, at + 1


def is_register(step: Step) -> bool:
    """Return whether an expression's step names a register."""
    return dw.DW_OP_reg0 <= step.atom < dw.DW_OP_reg0 + 32
