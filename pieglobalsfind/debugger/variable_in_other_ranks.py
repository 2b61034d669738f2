"""Where other ranks have the variable that one rank has at an address, as far as that can be proven.

Takes a moment of a process. Names mean the same in two ranks whose user frames are at the same place of the same file:
such ranks are grouped. A variable of static storage is at the same offset in each rank's copy of its object. A
frame's variable is at the same distance from the CFA in each rank, if debug information gives a constant one. Of
anything else it says nothing. It reads stacks, and evaluates no expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Union

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.expression import MASK, UnsupportedError, signed
from pieglobalsfind.dwarf.locals import LocalReader, LocalsAt
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Rank, Region
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import user_frame
from pieglobalsfind.stacks.frame_values import CFA_ALONE
from pieglobalsfind.stacks.unwind import Activation

WORD = 8
REGISTER_PLUS = range(dw.DW_OP_breg0, dw.DW_OP_breg0 + 32)  # DW_OP_breg0 to DW_OP_breg31


@dataclass(frozen=True)
class UserFrame:
    """The frame that a rank's expressions are about. `file` and `vaddr`: the file of its code, and where there."""

    rank: Rank
    activation: Activation
    file: str
    vaddr: int


@dataclass(frozen=True)
class InObject:
    """A variable of static storage, or a function: `size` bytes, in an object's original at the address `original`."""

    object: int
    original: int
    size: int


@dataclass(frozen=True)
class InFrame:
    """A variable at a constant distance from its frame's CFA."""

    distance: int


@dataclass(frozen=True)
class InRegister:
    """A variable of `size` bytes that is in a register, by DWARF's number for it."""

    number: int
    size: int


InMemory = Union[InObject, InFrame]
Variable = Union[InMemory, InRegister]


class SameVariable:
    """The variables of one moment's suspended ranks."""

    def __init__(self, moment: ProcessView) -> None:
        self._moment = moment
        self._locals: dict[str, Optional[LocalReader]] = {}

    @cached_property
    def _pointers(self) -> list[int]:
        threads = [thread.registers for thread in self._moment.target.threads()]
        number = self._moment.table.processor.stack_pointer
        return [thread[number] for thread in threads if not isinstance(thread, Absent) and number in thread]

    def alike(self, numbers: Sequence[int]) -> list[list[UserFrame]]:
        """The ranks whose user frames are known, those together in whose frames names mean the same.

        Left out is who runs, and who has pages of its own: one address is several places then.
        """
        groups: dict[tuple[str, int], list[UserFrame]] = {}
        for number in numbers:
            frame = self._user_frame(self._moment.rank(number))
            if frame is not None:
                groups.setdefault((frame.file, frame.vaddr), []).append(frame)
        return list(groups.values())

    def _user_frame(self, rank: Rank) -> Optional[UserFrame]:
        stack = rank.stack
        if rank.address_space or rank.pages_of or not isinstance(stack, Region):
            return None
        if any(pointer in stack for pointer in self._pointers):
            return None
        try:
            walker = self._moment.walker
            walked = walker.activations(rank)
            activation = user_frame(self._moment, rank.rank, walked[0], _lookup_of) if walked is not None else None
            place = walker.place(activation.lookup) if activation is not None else Absent("")
        except RanklensError:
            return None
        if activation is None or isinstance(place, Absent):
            return None
        return UserFrame(rank, activation, *place)

    def variable(self, frame: UserFrame, name: str, address: int, size: int) -> Optional[InMemory]:
        """The variable of `size` bytes that a name means in a frame, and that lies at an address there."""
        owner = self._moment.translator.owner(address)
        place: Optional[InMemory] = None
        if owner.object is not None and owner.kind in ("code", "data", "rodata", "shared") and size > 0:
            place = InObject(owner.object, owner.original, size)
        elif owner.kind == "stack" and owner.rank == frame.rank.rank:
            distance = InFrame(signed(address - frame.activation.cfa))
            place = distance if distance in self._in_frame(frame, name) else None
        return place if place is not None and self.address(frame, place) == address else None

    def in_frame(self, frame: UserFrame, name: str) -> Optional[InFrame]:
        """The variable that a name means in a frame, if it is in the frame and no other there has the name."""
        places = self._in_frame(frame, name)
        return places[0] if len(places) == 1 else None

    def _in_frame(self, frame: UserFrame, name: str) -> list[InFrame]:
        """Where variables of a name are, inner and outer ones; none if one of them is elsewhere."""
        locals_at = self._locals_at(frame)
        if locals_at is None or locals_at.frame_base != CFA_ALONE:
            return []
        places = [variable.steps for variable in locals_at.variables if variable.name == name]
        if not all(len(steps) == 1 and steps[0].atom == dw.DW_OP_fbreg for steps in places):
            return []
        return [InFrame(signed(steps[0].number)) for steps in places]

    def register(self, frame: UserFrame, name: str, size: int) -> Optional[InRegister]:
        """The variable of `size` bytes that a name means in a frame, if it is in a register."""
        locals_at = self._locals_at(frame)
        places = (
            [variable.steps for variable in locals_at.variables if variable.name == name]
            if locals_at is not None
            else []
        )
        if len(places) != 1 or len(places[0]) != 1 or not 0 < size <= WORD:
            return None
        number = places[0][0].atom - dw.DW_OP_reg0
        processor = self._moment.table.processor
        is_general = 0 <= number < len(processor.register_names) and number != processor.pc
        return InRegister(number, size) if is_general else None

    def reference(self, frame: UserFrame, name: str) -> Union[InFrame, InRegister, None]:
        """Where a frame has the address of what a name means there, as of arguments that Fortran passes."""
        locals_at = self._locals_at(frame)
        variables = locals_at.variables if locals_at is not None else ()
        places = [variable.steps for variable in variables if variable.name == name]
        if locals_at is None or len(places) != 1:
            return None
        first = places[0][0]
        atoms = [step.atom for step in places[0]]
        if atoms == [dw.DW_OP_fbreg, dw.DW_OP_deref] and locals_at.frame_base == CFA_ALONE:
            return InFrame(signed(first.number))
        is_register = len(atoms) == 1 and first.atom in REGISTER_PLUS and first.number == 0
        return InRegister(first.atom - dw.DW_OP_breg0, WORD) if is_register else None

    def _locals_at(self, frame: UserFrame) -> Optional[LocalsAt]:
        try:
            reader = self._local_reader(frame.file)
            return reader.at(frame.vaddr) if reader is not None else None
        except (RanklensError, UnsupportedError):
            return None

    def _local_reader(self, path: str) -> Optional[LocalReader]:
        if path not in self._locals:
            file = self._moment.walker.file(path)
            self._locals[path] = LocalReader(file) if file is not None else None
        return self._locals[path]

    @staticmethod
    def content(frame: UserFrame, variable: InRegister) -> Optional[bytes]:
        """What a rank has in a register, None where no frame has saved it."""
        held = frame.activation.registers.get(variable.number)
        return None if held is None else held.to_bytes(WORD, "little")[: variable.size]

    def address(self, frame: UserFrame, variable: InMemory) -> Optional[int]:
        """Where a rank has its instance; None if it has none, or one whose parts lie apart."""
        if isinstance(variable, InFrame):
            return (frame.activation.cfa + variable.distance) & MASK
        elf_object = self._moment.table.objects[variable.object]
        first = data_place(frame.rank, elf_object, variable.original)
        last = data_place(frame.rank, elf_object, variable.original + variable.size - 1)
        if isinstance(first, Absent) or isinstance(last, Absent) or last - first != variable.size - 1:
            return None
        return first


def _lookup_of(activation: Activation) -> int:
    return activation.lookup
