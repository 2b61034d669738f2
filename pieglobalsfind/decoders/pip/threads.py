"""Which kernel thread each task of PiP is: by the thread control block that its record leads to, wherever in it.

Takes the tasks' records; gives threads and stacks. Versions differ in where a record keeps its pthread_t, so it is
looked for: one way (offsets of at most two pointers within what PiP has allocated, then of the word) has to lead to a
control block for most tasks, each its own. A control block begins with a pointer to itself and has another one
(x86-64), or is one of those that libc lists.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.model import Absent, Region
from pieglobalsfind.target import KernelThread, MemoryMapping, Target, read_or_none
from pieglobalsfind.targets import in_address_space

MOST_WORDS = 128  # of a record, or of what it points to
DEPTH = 2
MOST_POINTERS = 1 << 18  # that are followed, of all records: those of real ones hold a few dozen each
NO_STACK = Absent("the stack pointer of its thread is unknown", "stop it in a debugger")

Way = tuple[int, ...]


@dataclass(frozen=True)
class PipThread:
    """A task's kernel thread; `pointer` is its control block's, on x86-64 also its thread pointer."""

    tid: int
    pointer: int
    stack: Union[Region, Absent]


def find(
    target: Target,
    maps: Sequence[MemoryMapping],
    processor: Processor,
    at: int,
    records: Mapping[int, int],
    size: int,
    area: tuple[int, int],
    here: Mapping[int, KernelThread],
    listed: Container[int] = (),
) -> dict[int, PipThread]:
    """The threads by the task's number; `at` is where a control block has the thread's id.

    `size` is a record's, `area` all that PiP has allocated with them, `here` the target's own threads by id, `listed`
    the control blocks in libc's lists: on some processors nothing else tells a control block.
    """

    def is_block(address: int) -> bool:
        return address in listed if processor.self_at is None else _is_block(target, address, processor.self_at)

    left = iter(range(MOST_POINTERS))
    ways = {number: _ways(target, record, size, area, left, is_block) for number, record in records.items()}
    best: dict[int, int] = {}
    for way in sorted({way for values in ways.values() for way in values}, key=lambda path: (len(path), path)):
        blocks = {number: values[way] for number, values in ways.items() if way in values}
        if len(set(blocks.values())) == len(blocks) > len(best):
            best = blocks
    threads = {number: _thread(target, maps, processor, block, at, here) for number, block in best.items()}
    return {number: thread for number, thread in threads.items() if thread is not None}


def _ways(
    target: Target,
    record: int,
    size: int,
    area: tuple[int, int],
    left: Iterator[int],
    is_block: Callable[[int], bool],
) -> dict[Way, int]:
    """By the way from a record to them, the control blocks that it leads to; `left` ends when enough was followed."""
    values: dict[Way, int] = {}
    waiting: list[tuple[Way, int, int]] = [((), record, size)]
    while waiting:
        way, start, length = waiting.pop(0)
        for (offset, value), _ in zip(_words(target, start, min(length, area[1] - start)), left):
            here = (*way, offset)
            if area[0] <= value < area[1]:
                if len(way) < DEPTH:
                    waiting.append((here, value, length))
            elif is_block(value):
                values[here] = value
    return values


def _words(target: Target, start: int, length: int) -> Iterator[tuple[int, int]]:
    data = read_or_none(target, start, 8 * min(length // 8, MOST_WORDS)) or b""
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    yield from ((8 * at, word) for at, word in enumerate(words) if word and word % 8 == 0)


def _is_block(target: Target, address: int, self_at: int) -> bool:
    data = read_or_none(target, address, self_at + 8) or b""
    return data[:8] == data[self_at:] == struct.pack("<Q", address)


def _thread(
    target: Target,
    maps: Sequence[MemoryMapping],
    processor: Processor,
    block: int,
    at: int,
    here: Mapping[int, KernelThread],
) -> Optional[PipThread]:
    """None once it has ended: the kernel clears its id."""
    tid = int.from_bytes(read_or_none(target, block + at, 4) or b"", "little", signed=True)
    if tid <= 0:
        return None
    kernel_thread = here.get(tid) or _elsewhere(target, tid)
    registers = kernel_thread.registers if kernel_thread else NO_STACK
    return PipThread(tid, block, _stack(maps, processor, block, registers))


def _elsewhere(target: Target, tid: int) -> Optional[KernelThread]:
    """A task that is a process is not a thread of another's."""
    memory = in_address_space(target, tid)
    threads = () if isinstance(memory, Absent) else memory.threads()
    return next((thread for thread in threads if thread.tid == tid), None)


def _stack(
    maps: Sequence[MemoryMapping], processor: Processor, block: int, registers: Union[Mapping[int, int], Absent]
) -> Union[Region, Absent]:
    """The mapping that the thread's stack pointer is in, below the control block if glibc has put both there."""
    pointer = registers.get(processor.stack_pointer) if not isinstance(registers, Absent) else None
    if pointer is None:
        return NO_STACK
    mapping = next((mapping for mapping in maps if mapping.start <= pointer < mapping.end), None)
    if mapping is None or not mapping.writable or mapping.path.startswith("/"):
        return NO_STACK
    end = block if pointer < block < mapping.end else mapping.end
    return Region(mapping.start, end - mapping.start)
