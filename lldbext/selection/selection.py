"""Which rank LLDB's own commands mean: the one whose thread is selected, unless the user asked for none.

Takes a session; selects threads of LLDB, and keeps the symbols in focus those of the selected rank. Ranks beyond the
number up to which all of them are threads become threads when they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional, Union

import lldb

from lldbext.lldb_api.frame_description import MOST_FRAMES
from lldbext.selection.lost_frames import mended
from lldbext.selection.session import Session
from lldbext.threads.thread_ids import rank_of_tid, tid_of
from pieglobalsfind.errors import TargetError
from pieglobalsfind.model import RUNNING, Absent, Rank
from pieglobalsfind.session.runtime_frames import fold
from pieglobalsfind.stacks.no_stack import check_is_here, no_registers
from pieglobalsfind.stacks.unwind import Activation


class Selection:
    """The selected rank of a process; made again for each use."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._process = session.process

    @property
    def rank(self) -> Optional[int]:
        """Return the rank of the selected thread, or None."""
        if self._session.wants_none():
            return None
        return self.rank_of(self._process.GetSelectedThread())

    @property
    def reason(self) -> str:
        """Why that rank (or none) is selected, to follow "because"."""
        thread = self._process.GetSelectedThread()
        if self._session.wants_none():
            return "you asked for none"
        if not thread.IsValid():
            return "LLDB has no thread"
        if self.rank_of(thread) is None:
            return f"none runs on thread {thread.GetIndexID()}"
        if self._session.chosen == self.rank or thread.GetThreadID() != tid_of(self.rank or 0):
            return "you asked for it"
        return f"it runs on the stopped thread {thread.GetIndexID()}"

    def rank_of(self, thread: Any) -> Optional[int]:
        """The rank that a thread of LLDB's is."""
        return rank_of_tid(int(thread.GetThreadID())) if thread.IsValid() else None

    def frame(self) -> Any:
        """The selected frame, None if there is no thread."""
        thread = self._process.GetSelectedThread()
        return thread.GetSelectedFrame() if thread.IsValid() else None

    def choose(self, rank: Optional[int]) -> None:
        """Select a rank's thread and the frame that `rank N` prints, or no rank: then a kernel thread.

        Raises `UsageError` if the rank has no frames; nothing changes then.
        """
        session = self._session
        if rank is None:
            self._leave_waiting()
            session.want_none()
        else:
            thread = self.thread(rank)
            session.chosen, session.none_since = rank, None
            self._process.SetSelectedThread(thread)
        if not session.modules.is_visiting:
            self.refocus()
        if rank is None:
            self._enter_no_rank()
        else:
            self._enter(rank)

    def _leave_waiting(self) -> None:
        """Select a kernel thread, the one that LLDB has stopped for rather than another."""
        if self.is_kernel_thread(self._process.GetSelectedThread()):
            return
        threads = [thread for thread in self._process if self.is_kernel_thread(thread)]
        threads.sort(key=lambda thread: thread.GetStopReason() in (lldb.eStopReasonNone, lldb.eStopReasonInvalid))
        if threads:
            self._process.SetSelectedThread(threads[0])

    def _enter_no_rank(self) -> None:
        """Select the innermost frame that is in no rank's copy: names mean the originals' there."""
        thread, owner = self._process.GetSelectedThread(), self._session.moment().translator.owner
        frames = (thread.GetFrameAtIndex(index) for index in range(min(thread.GetNumFrames(), MOST_FRAMES)))
        outside = next((frame for frame in frames if owner(frame.GetPC()).rank is None), None)
        if outside is not None:
            thread.SetSelectedFrame(outside.GetFrameID())

    def is_kernel_thread(self, thread: Any) -> bool:
        """Whether a thread of LLDB's is one of the kernel's: a rank that waits has none."""
        rank = self.rank_of(thread)
        return rank is None or thread.GetThreadID() == tid_of(rank)

    def _enter(self, rank: int) -> None:
        """Select the innermost frame that is not the runtime's own."""
        shown = fold(self._session.moment(), self.frames(rank), pc_of).shown
        for frame in itertools.islice(shown, 1):
            if not isinstance(frame, Activation):  # LLDB can't select what it does not come to
                self._process.GetSelectedThread().SetSelectedFrame(frame.GetFrameID())

    def refocus(self) -> None:
        """Make names mean the selected rank's variables."""
        moment = self._session.moment()
        self._session.modules.focus(moment, self.rank)

    def thread(self, rank: int) -> Any:
        """LLDB's thread of a rank; raises `UsageError` if it has no frames."""
        image = self._session.moment().rank(rank)
        listed = self._listed(image)
        if listed is None and may_be_thread(image):
            self._session.ask_for(rank)
            listed = self._listed(image)
        if listed is None:
            raise TargetError(f"rank {rank}'s stack can't be unwound", f"rank info {rank} shows what is known of it")
        modules = self._session.modules
        if rank not in modules.ranks and not modules.is_visiting:
            self._session.let_stay(rank)
        if modules.is_visiting or rank not in modules.ranks:
            modules.visit(self._session.moment(), rank)
        return listed

    def _listed(self, rank: Rank) -> Any:
        self._process.GetNumThreads()  # makes LLDB list them
        thread = self._process.GetThreadByID(self._session.numbers.get(rank.rank, 0))
        return thread if thread.IsValid() else None

    def frames(self, rank: int) -> Iterator[Union[Any, Activation]]:
        """A rank's frames, innermost first, up to `main` or else the function where its runtime enters it.

        LLDB's as long as they are right, then what is true instead (lost_frames.py).
        """
        for frame in mended(self._session.moment(), rank, own_frames(self.thread(rank))):
            yield frame
            if not isinstance(frame, Activation) and self.is_outermost(frame):
                return

    def is_outermost(self, frame: Any) -> bool:
        """Whether nothing of the program, or of what a rank is, lies above a frame."""
        entry, pc = self._session.moment().entry, frame.GetPC()
        # It may end in a call that never returns.
        is_entry = pc in entry or (pc == entry.end and entry.size > 0 and frame.GetFrameID() > 0)
        return bool(is_entry or frame.GetFunctionName() == "main")

    @contextmanager
    def visiting(self, rank: int) -> Iterator[None]:
        """The rank is selected inside, and what was selected is so again afterwards."""
        session = self._session
        thread, none = self._process.GetSelectedThread(), session.none_since
        level = thread.GetSelectedFrame().GetFrameID() if thread.IsValid() else 0
        tid, chosen = thread.GetThreadID(), session.chosen
        try:
            self.choose(rank)
            yield
        finally:
            again = self._process.GetThreadByID(tid)
            self._process.SetSelectedThread(again)
            session.chosen, session.none_since = chosen, none
            if not session.modules.is_visiting:
                again.SetSelectedFrame(level)
                self.refocus()


def own_frames(thread: Any) -> Iterator[Any]:
    """A thread's frames as LLDB has them, innermost first."""
    for index in range(MOST_FRAMES):
        frame = thread.GetFrameAtIndex(index)
        if not frame.IsValid():
            return
        yield frame


def pc_of(frame: Union[Any, Activation]) -> int:
    """Where a frame's code goes on."""
    return frame.pc if isinstance(frame, Activation) else int(frame.GetPC())


def may_be_thread(rank: Rank) -> bool:
    """Whether a rank has a stack to be walked; raises `UsageError` that says why not."""
    check_is_here(rank)
    if isinstance(rank.context, Absent) and rank.state != RUNNING:
        raise no_registers(rank.rank, rank.context)
    return True
