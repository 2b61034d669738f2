"""What is to be copied of a process while it stands still. It knows nothing of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pieglobalsfind.targets.ranges import Range, merged


@dataclass(frozen=True)
class StackPlan:
    """A stack of which the part in use is copied: from the word at `pointer` (0: unknown), or a thread's stack pointer.

    `expected` is how many bytes at its end are copied where neither leads into it.
    """

    start: int
    end: int
    pointer: int
    expected: int


@dataclass(frozen=True)
class Plan:
    """What is copied of a process; `unsettled` is code in which a thread has left one rank and not yet saved it.

    `untouched`, ascending, are zeros that the process has no memory for: nothing to copy, unless it writes there before
    it stands still. `other_stacks`: what threads have put last on stacks that are not in `stacks` is copied, too.
    `with_maps`: so is the memory map, which may change soon.
    """

    ranges: tuple[Range, ...] = ()
    stacks: tuple[StackPlan, ...] = ()
    unsettled: tuple[Range, ...] = ()
    untouched: tuple[Range, ...] = ()
    other_stacks: bool = False
    with_maps: bool = False

    def enlarged(self, ranges: Iterable[Range]) -> Plan:
        """Return a plan with more ranges."""
        return replace(self, ranges=merged((*self.ranges, *ranges)))
