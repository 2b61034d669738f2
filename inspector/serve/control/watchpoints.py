"""Data that ranks watch, by the processor's debug registers: in every thread of the process where the rank is.

Takes addresses of the process; a few aligned pieces can be watched at a time in one process (`machine/control.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pieglobalsfind.machine.control_lookup import needed_control
from pieglobalsfind.targets.traced_threads import debug_register, set_debug_register

WRITE, ACCESS = "write", "access"


@dataclass(frozen=True)
class Watch:
    """What a rank watches: `seen` is the address that its debugger knows, `place` where the process has it."""

    rank: int
    seen: int
    place: int
    size: int
    kind: str


def pieces(watch: Watch) -> Iterator[tuple[int, int]]:
    """(address, size) of aligned pieces that one register watches each."""
    at, end = watch.place, watch.place + watch.size
    lengths = needed_control().debug_registers.lengths
    while at < end:
        size = max(size for size in lengths if at % size == 0 and at + size <= end)
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
        if watch.size <= 0 or sum(1 for each in others for _ in pieces(each)) > needed_control().debug_registers.slots:
            return False
        self._watches = others
        return True

    def remove(self, rank: int, seen: int, kind: str) -> None:
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
        number = needed_control().debug_registers.control
        for pid, tid in threads:
            addresses, control = self._registers(pid, process_of)
            if self._set.get(tid, ((), 0)) == (addresses, control):
                continue
            set_debug_register(tid, number, 0)
            for slot, address in enumerate(addresses):
                set_debug_register(tid, slot, address)
            set_debug_register(tid, number, control)
            self._set[tid] = addresses, control

    def _registers(self, pid: int, process_of: Mapping[int, int]) -> tuple[tuple[int, ...], int]:
        addresses: list[int] = []
        control = 0
        for watch, at, size in self._of(pid, process_of):
            control |= needed_control().debug_registers.enabled(len(addresses), watch.kind == ACCESS, size)
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
        registers = needed_control().debug_registers
        status = debug_register(tid, registers.status)
        if not status & (1 << registers.slots) - 1:
            return []
        set_debug_register(tid, registers.status, 0)
        watched = [watch for watch, _, _ in self._of(pid, process_of)]
        return [watch for slot, watch in enumerate(watched) if status >> slot & 1]
