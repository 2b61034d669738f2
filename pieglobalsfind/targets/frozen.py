"""A running process that stands still while it is looked at: every thread stopped by ptrace(2), no signal sent.

Takes a pid; gives a live target that can't change, running threads' registers included. The kernel lets everything go
when the target is closed, and also when this process ends in any other way, killed included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Optional

from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.ptrace import Standstill, by_dwarf_number, raw_registers


class FrozenTarget(LiveTarget):
    """The process, stopped from the construction to `close`. Raises `TargetError` if it may not be traced.

    `others` are processes of the same job's ranks that stand still with it.
    """

    def __init__(self, pid: int, standstill: Optional[Standstill] = None) -> None:
        super().__init__(pid)
        self.others: dict[int, FrozenTarget] = {}
        self._standstill = standstill or Standstill((pid,))
        self.began = self._standstill.began

    def __enter__(self) -> FrozenTarget:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    @property
    def is_live(self) -> bool:
        """Return whether the target can change: it stands still."""
        return False

    def close(self) -> None:
        """Let every thread go on."""
        while self.others:
            self.others.popitem()[1].close()
        self._standstill.release()

    def stop_also(self, pids: Iterable[int]) -> None:
        """Until `close`; raises `TargetError` as the constructor does."""
        for pid in pids:
            self.others[pid] = FrozenTarget(pid)

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads with their registers."""
        return tuple(
            KernelThread(tid, by_dwarf_number(raw_registers(tid))) for tid in self._standstill.threads(self.pid)
        )
