"""What decoding a variable's bytes needs of the rank that has them: types, memory, and names of addresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Union

from pieglobalsfind.dwarf.types import TypeTable
from pieglobalsfind.model import Absent
from pieglobalsfind.values.containers.bounded_contents import Contents


def never(name: str) -> bool:
    """No pointer is followed."""
    return False


def nowhere(vaddr: int) -> Absent:
    """It is not known where the rank has anything."""
    return Absent("where it lies is not known")


@dataclass(frozen=True)
class Surroundings:
    """What decoding needs of the variable's rank, and what it has read of that rank's containers.

    `follow` says by a pointer's name whether its object is shown, too, one level deep. `texts` has elements' texts by
    type and bytes, for values that mean the same on all ranks. `is_futile`: no text will be shown, only places are
    wanted. `own` gives the rank's address for a vaddr of the variable's file.
    """

    types: TypeTable
    language: str
    read: Callable[[int, int], bytes]
    name_address: Callable[[int], str]
    contents: Contents = field(default_factory=Contents)
    follow: Callable[[str], bool] = never
    texts: dict[tuple[int, bytes], str] = field(default_factory=dict)
    is_futile: Callable[[], bool] = bool
    own: Callable[[int], Union[int, Absent]] = nowhere


class VariableBytes(NamedTuple):
    """Bytes of the target and where they lie."""

    address: int
    data: bytes
