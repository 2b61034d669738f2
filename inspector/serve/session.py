"""One debugger's connection: which ranks it has as processes, which one is meant, whether the job runs for it.

Takes the job and what the user allows; is changed by the handlers of packets, which stand beside it. While it has
ranks and has not continued, it holds the job still.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.model import RUNNING

from . import framing
from .ranks.rank_process import RankProcess
from .ranks.served_job import Moment, ServedJob
from .ranks.thread_control_block import Modules

FIRST_PID = 5_000_000  # above every pid that a Linux kernel gives: debuggers ask their host about smaller ones
TRAP, INTERRUPTED = 5, 2  # signals, as the protocol numbers them
OK, FAILED, UNSUPPORTED = b"OK", b"E01", b""
MOST_ATTACHED = 1 << 20


@dataclass(frozen=True)
class Permissions:
    """What the user allows the debugger.

    `shown` are the ranks that it has from the beginning, None: those that it attaches to. `write`: it may write
    suspended ranks' data, `files`: it reads the job's files through the connection, `control`: it controls ranks.
    """

    shown: Optional[Sequence[int]]
    every: bool = False
    write: bool = False
    files: bool = False
    control: bool = False


class ServeSession:
    """What a connection knows. `complain` prints a sentence for the user, `port` is where more connections go."""

    def __init__(self, source: ServedJob, allowed: Permissions, complain: Callable[[str], None], port: int = 0) -> None:
        self.source = source
        self.allowed = allowed
        self.port = port
        self.attached: list[int] = []
        self.current: Optional[int] = None
        self.described: Optional[int] = None  # the rank whose program was asked for last
        self.is_running = False
        self.is_lldb = False
        self.is_multiprocess = False
        self.acknowledges = True
        self.started = False
        self.documents: dict[bytes, bytes] = {}
        self.listed = 0  # threads that a list of several parts has had
        self.files: set[int] = set()  # descriptors that it has opened
        self.libraries_of: dict[int, Optional[int]] = {}  # by rank, the process whose libraries the debugger has read
        self._modules: dict[int, Modules] = {}  # by rank, as the debugger counts them
        self.processes: list[bytes] = []  # what is left of a list of processes
        self._complain = complain
        self._complaints: set[str] = set()

    def complain(self, sentence: str) -> None:
        """Print a sentence on the server's own standard error, once: few debuggers print what a packet answers."""
        if sentence not in self._complaints and len(self._complaints) < 64:
            self._complaints.add(sentence)
            self._complain(sentence)

    # ---- the job ----

    @property
    def moment(self) -> Moment:
        """Raises `RanklensError` while the job runs for this debugger."""
        if self.is_running or not self.source.is_held:
            raise RanklensError(f"{self.source.name} runs", "interrupt it")
        return self.source.moment

    @contextmanager
    def looking(self, wanted: Optional[Collection[int]] = ()) -> Iterator[Moment]:
        """The job held still inside; ranks `wanted` (None: all) can be looked at then."""
        self.source.hold(self, wanted)
        try:
            yield self.source.moment
        finally:
            self.settle()

    def settle(self) -> None:
        """Hold the job if there is something to look at, else let it go on."""
        if self.attached and (not self.is_running or self.allowed.control):
            self.source.hold(self, self.attached)
        else:
            self.source.let_go(self)
        self.documents.clear()

    def close(self) -> None:
        """The connection is lost, or has ended."""
        self.attached.clear()
        while self.files:
            os.close(self.files.pop())
        self.source.let_go(self)

    # ---- ranks ----

    def begin(self) -> None:
        """Show the ranks that the user has chosen; LLDB takes one process only."""
        if self.started:
            return
        self.started = True
        shown = self.allowed.shown
        if not self.allowed.every and shown is None:
            return
        with self.looking(None if self.allowed.every else shown) as moment:
            wanted = moment.numbers if self.allowed.every else shown or ()
            if self.is_lldb and len(wanted) > 1:
                raise UsageError("LLDB takes one rank as one process", "name it by --rank, or attach by its platform")
            for number in wanted:
                self._take(moment, number, one_of_many=len(wanted) > 1)

    def _take(self, moment: Moment, number: int, one_of_many: bool) -> None:
        try:
            moment.rank(number).check()
        except RanklensError as error:
            if not one_of_many:
                raise
            self.complain(f"{error}; it is left out")
            return
        self.attached.append(number)
        if self.current is None:
            self.current = number

    def attach(self, number: int) -> None:
        """Raises `RanklensError` if the rank can't be had."""
        with self.looking((number,)) as moment:
            moment.rank(number).check()
            if number not in self.attached:
                self.attached.append(number)
            self.current = number

    def detach(self, number: int) -> None:
        """Raises `UsageError` for a rank that is not attached to."""
        if number not in self.attached:
            raise UsageError(f"rank {number} is not attached to")
        self.attached.remove(number)
        self.source.forget(number)
        if self.current == number:
            self.current = self.attached[0] if self.attached else None
        self.settle()

    def rank(self, number: Optional[int] = None) -> RankProcess:
        """An attached rank, the current one by default; raises `RanklensError`."""
        number = self.current if number is None else number
        if number is None or number not in self.attached:
            raise UsageError("no such rank is attached to")
        if self.is_running:
            raise RanklensError(f"{self.source.name} runs", "interrupt it")
        return self.source.rank(number)

    def running_rank(self) -> Optional[int]:
        """The rank to show after an interrupt: one that runs, or the current one, if it is still there."""
        present = [number for number in self.attached if self.is_present(number)]
        if self.current in present and len(present) == 1:
            return self.current
        running = (number for number in present if self.moment.rank(number).rank.state == RUNNING)
        return next(running, self.current if self.current in present else next(iter(present), None))

    def is_present(self, number: int) -> bool:
        """Whether an attached rank can be looked at now."""
        try:
            self.moment.rank(number).check()
        except RanklensError:
            return False
        return True

    def has_moved(self, number: int, process: Optional[int]) -> bool:
        """Whether the debugger has read a rank's libraries in another process; it is thought to read them anew then."""
        before = self.libraries_of.get(number, process)
        self.libraries_of[number] = process
        return before != process

    def modules_of(self, number: int) -> Modules:
        """Which modules of thread-local variables the debugger has counted in a rank."""
        return self._modules.setdefault(number, Modules())

    # ---- names ----

    def thread_id(self, number: int) -> bytes:
        """A rank's only thread, as this debugger names it."""
        pid = FIRST_PID + number
        return b"p%x.%x" % (pid, pid) if self.is_multiprocess else b"%x" % pid

    def number_of(self, pid: int) -> int:
        """The rank that a pid means; raises `ValueError`."""
        if not FIRST_PID <= pid < FIRST_PID + MOST_ATTACHED:
            raise ValueError("no rank's pid")
        return pid - FIRST_PID

    def thread_of(self, written: bytes) -> Optional[int]:
        """The rank that a thread id means, None for any; raises `ValueError`."""
        process, _, thread = written[1:].partition(b".") if written.startswith(b"p") else (b"", b"", written)
        word = process if thread in (b"", b"0", b"-1") and process else thread
        if word in (b"", b"0", b"-1"):
            return None
        return self.number_of(framing.hexadecimal(word))
