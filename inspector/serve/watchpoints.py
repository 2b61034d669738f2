"""Data that ranks watch, by the processor's debug registers: in every thread of the process where the rank is.

Takes addresses of the process; four pieces of up to 8 aligned bytes can be watched at a time in one process. Source:
Intel's manual, volume 3, "Debug Registers".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pieglobalsfind.targets.traced_threads import debug_register, set_debug_register

WRITE, ACCESS = 1, 3  # of DR7's field R/W
SLOTS, STATUS, CONTROL = 4, 6, 7
LENGTHS = {1: 0, 2: 1, 4: 3, 8: 2}  # of DR7's field LEN


@dataclass(frozen=True)
class Watch:
    """What a rank watches: `seen` is the address that its debugger knows, `place` where the process has it."""

    rank: int
    seen: int
    place: int
    size: int
    kind: int


def pieces(watch: Watch) -> Iterator[tuple[int, int]]:
    """(address, size) of aligned pieces that one register watches each."""
    at, end = watch.place, watch.place + watch.size
    while at < end:
        size = max(size for size in LENGTHS if at % size == 0 and at + size <= end)
        yield at, size
        at += size


class Watchpoints:
    """Those of all ranks."""

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        self._set: dict[int, tuple[tuple[int, ...], int]] = {}  # by thread: addresses, control

    def add(self, watch: Watch) -> bool:
        """False if there are no registers left for it."""
        if watch in self._watches:
            return True
        others = [*self._watches, watch]
        if watch.size <= 0 or sum(1 for each in others for _ in pieces(each)) > SLOTS:
            return False
        self._watches = others
        return True

    def remove(self, rank: int, seen: int, kind: int) -> None:
        """Watch no more what a rank's debugger knows by an address."""
        self._watches = [each for each in self._watches if (each.rank, each.seen, each.kind) != (rank, seen, kind)]

    def forget(self, rank: int) -> None:
        """Watch nothing of a rank."""
        self._watches = [each for each in self._watches if each.rank != rank]

    def clear(self) -> None:
        """Watch nothing; the registers are cleared by `put_in`."""
        self._watches.clear()

    def put_in(self, threads: Iterable[tuple[int, int]], process_of: Mapping[int, int]) -> None:
        """Into stopped threads, (process, thread) each, as far as they have other registers."""
        for pid, tid in threads:
            addresses, control = self._registers(pid, process_of)
            if self._set.get(tid, ((), 0)) == (addresses, control):
                continue
            set_debug_register(tid, CONTROL, 0)
            for slot, address in enumerate(addresses):
                set_debug_register(tid, slot, address)
            set_debug_register(tid, CONTROL, control)
            self._set[tid] = addresses, control

    def _registers(self, pid: int, process_of: Mapping[int, int]) -> tuple[tuple[int, ...], int]:
        addresses: list[int] = []
        control = 0
        for watch, at, size in self._of(pid, process_of):
            slot = len(addresses)
            control |= 1 << 2 * slot | (watch.kind | LENGTHS[size] << 2) << 16 + 4 * slot
            addresses.append(at)
        return tuple(addresses), control

    def _of(self, pid: int, process_of: Mapping[int, int]) -> Iterator[tuple[Watch, int, int]]:
        for watch in self._watches:
            if process_of.get(watch.rank) == pid:
                yield from ((watch, at, size) for at, size in pieces(watch))

    def hit(self, pid: int, tid: int, process_of: Mapping[int, int]) -> list[Watch]:
        """What a thread that has stopped has touched since this was asked last."""
        if not self._set.get(tid, ((), 0))[1]:
            return []
        status = debug_register(tid, STATUS)
        if not status & 0xF:
            return []
        set_debug_register(tid, STATUS, 0)
        watched = [watch for watch, _, _ in self._of(pid, process_of)]
        return [watch for slot, watch in enumerate(watched) if status >> slot & 1]
