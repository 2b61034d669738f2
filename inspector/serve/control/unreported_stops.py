"""Decide which stops of a thread are not reported to the debugger.

Takes stops and registers as the kernel gives them; knows no ranks.
"""

from __future__ import annotations

from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.targets.traced_threads import ENDED, EXECUTED, NEW_PROCESS, VFORK_DONE, ThreadStop

TRAP = 5  # SIGTRAP
FATAL = frozenset((3, 4, 6, 7, 8, 11, 24, 25, 31))  # signals that a debugger hears of: those that write a core file


def is_trivial(stop: ThreadStop) -> bool:
    """Whether a thread goes on at once: no debugger hears of it, and no instruction of ours is concerned."""
    if stop.event:
        return stop.event not in (*NEW_PROCESS, VFORK_DONE, EXECUTED, ENDED)
    return stop.signal != TRAP and stop.signal not in FATAL


def arguments_of(raw: bytes, processor: Processor) -> tuple[int, int]:
    """The first two of a function that a thread has just entered, as 32-bit numbers, the second one signed."""
    places = (8 * processor.kernel_registers.index(number) for number in processor.integer_arguments[:2])
    first, second = (int.from_bytes(raw[at : at + 4], "little") for at in places)
    return first, second - (1 << 32) if second >> 31 else second
