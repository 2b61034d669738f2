"""Which ranks want to stop where, and the instructions that stop them: in memory only while the job runs.

Takes addresses that ranks name and the process that each rank is in; writes the processor's instruction into that
process, and the bytes that were there back. Where ranks share code, one instruction serves all of them.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Optional

from pieglobalsfind.decoders.registry.layout import AFTER_COPIES, AFTER_UNPACK, BEFORE_COPIES, BEFORE_PACK
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.control_lookup import needed_control

RUNTIME = -1  # in place of a rank: what this server itself has to know


@dataclass
class ProcessCode:
    """The code of one process. `replaced` are the bytes that stand aside, by address."""

    pid: int
    file: int
    replaced: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, pid: int) -> ProcessCode:
        """Raises `RanklensError` if its memory can't be written."""
        try:
            return cls(pid, os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            raise RanklensError(f"the memory of process {pid} can't be written, {error}") from error

    def put_in(self, address: int) -> None:
        """An address that can't be written any more gets nothing: the rank's memory is gone."""
        if address in self.replaced:
            return
        with suppress(OSError):
            instruction = needed_control().breakpoint
            before = os.pread(self.file, len(instruction), address)
            if len(before) == len(instruction) == os.pwrite(self.file, instruction, address):
                self.replaced[address] = before

    def take_out(self) -> None:
        """Give every byte back."""
        write_back(self.file, self.replaced)
        self.replaced.clear()

    def close(self) -> None:
        """Give every byte back, and forget the process."""
        self.take_out()
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def write_back(file: int, replaced: Mapping[int, bytes]) -> None:
    """What instructions stand in place of, into a process's memory."""
    for address, before in replaced.items():
        with suppress(OSError):
            os.pwrite(file, before, address)


class Breakpoints:
    """Those of all ranks. A rank that is `packed` has none in memory: they would leave with its bytes."""

    def __init__(self) -> None:
        self._wanted: dict[int, set[int]] = {}  # ranks by address
        self._bound: dict[tuple[int, int], int] = {}  # the process, by rank and address, where it does not move along
        self._runtime: dict[int, int] = {}  # by process: where it tells of its ranks
        self._codes: dict[int, ProcessCode] = {}
        self.awaited: Optional[tuple[int, int]] = None  # rank, address: where one goes on that a debugger steps
        self.packed = set[int]()
        self.copying = set[int]()  # processes that copy their program

    def add(self, rank: int, address: int, process: Optional[int] = None) -> None:
        """Have a rank stop at an address; `process`: in this process alone, where ranks share that code."""
        self._wanted.setdefault(address, set()).add(rank)
        if process is not None:
            self._bound[rank, address] = process

    def remove(self, rank: int, address: int) -> None:
        """Have a rank stop there no more."""
        ranks = self._wanted.get(address, set())
        ranks.discard(rank)
        self._bound.pop((rank, address), None)
        if not ranks:
            self._wanted.pop(address, None)

    def forget(self, rank: int) -> None:
        """Have a rank stop nowhere."""
        for address in [address for address, ranks in self._wanted.items() if rank in ranks]:
            self.remove(rank, address)

    def watch_runtime(self, pid: int, address: int) -> None:
        """Have a process stop where its runtime tells of its ranks; 0: nowhere."""
        self._runtime[pid] = address

    def follow(self, kind: int, pid: int, rank: int) -> None:
        """Take note of what a runtime tells of a rank, or of its process."""
        if kind == BEFORE_COPIES:
            self.copying.add(pid)
        elif kind == AFTER_COPIES:
            self.copying.discard(pid)
        elif kind == BEFORE_PACK:
            self.packed.add(rank)
        elif kind == AFTER_UNPACK:
            self.packed.discard(rank)

    def is_wanted(self, rank: int, address: int, pid: int) -> bool:
        """Whether a rank stops at an address of a process."""
        return rank in self._wanted.get(address, ()) and self._bound.get((rank, address), pid) == pid

    def is_of_runtime(self, pid: int, address: int) -> bool:
        """Whether that is where the runtime tells of its ranks."""
        return bool(address) and self._runtime.get(pid) == address

    def stands_at(self, pid: int, address: int) -> bool:
        """Whether an instruction of ours is there now."""
        return pid in self._codes and address in self._codes[pid].replaced

    # ---- in memory ----

    def put_in(self, process_of: Mapping[int, int], lenders: Container[int]) -> None:
        """Into the processes where the ranks are, except those whose memory a child has; the job stands still."""
        for pid, address in self._runtime.items():
            if address and pid not in lenders:
                self._code(pid).put_in(address)
        awaited = {self.awaited[1]: {self.awaited[0]}} if self.awaited is not None else {}
        for address, ranks in (*self._wanted.items(), *awaited.items()):
            for pid in set(self._processes(ranks, address, process_of)) - self.copying:
                if pid not in lenders:
                    self._code(pid).put_in(address)

    def _processes(self, ranks: set[int], address: int, process_of: Mapping[int, int]) -> Iterator[int]:
        for rank in ranks - self.packed:
            pid = process_of.get(rank)
            if pid is not None and self._bound.get((rank, address), pid) == pid:
                yield pid

    def _code(self, pid: int) -> ProcessCode:
        if pid not in self._codes:
            self._codes[pid] = ProcessCode.of(pid)
        return self._codes[pid]

    def take_out(self) -> None:
        """Of all processes."""
        for code in self._codes.values():
            code.take_out()

    def take_out_of_child(self, parent: int, child: int) -> None:
        """Of a process that has been made with a copy of another one's memory."""
        if parent in self._codes:
            with suppress(OSError):
                file = os.open(f"/proc/{child}/mem", os.O_RDWR | os.O_CLOEXEC)
                write_back(file, self._codes[parent].replaced)
                os.close(file)

    def close(self, pid: int) -> None:
        """A process has ended, or has executed another program: its memory is not what it was."""
        self._runtime.pop(pid, None)
        code = self._codes.pop(pid, None)
        if code is not None:
            code.replaced.clear()
            code.close()

    def clear(self) -> None:
        """Take everything out, and forget it."""
        for code in self._codes.values():
            code.close()
        self._codes.clear()
        self._wanted.clear()
        self._bound.clear()
        self._runtime.clear()
        self.packed.clear()
        self.copying.clear()
