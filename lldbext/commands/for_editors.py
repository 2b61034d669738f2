"""`ranklens-editor`: what the adapter of `ranklens-lldb-dap` asks LLDB before it answers an editor.

Takes the number of a rank's thread; prints one line of JSON. Users don't type it, and it is not in `rank`'s help.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Optional

import lldb

from lldbext.commands.command_overrides import kept_frame
from lldbext.lldb_api.frame_description import MOST_FRAMES
from lldbext.lldb_api.run_commands import sentence_of
from lldbext.selection.debugger import LldbDebugger
from lldbext.selection.session import Session
from lldbext.threads.thread_ids import rank_of_tid
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import fold, is_one_file, runtime_path, user_frame

NAME = "ranklens-editor"


class EditorCommand:
    """`ranklens-editor names TID`, `ranklens-editor settle`, `ranklens-editor runtime TID`."""

    def __init__(self, debugger: Any, internal_dict: dict[str, Any]) -> None:
        self._debugger = LldbDebugger(debugger)

    def __call__(self, debugger: Any, arguments: str, context: Any, result: Any) -> None:
        """Carry out one request."""
        try:
            request, _, tid = arguments.strip().partition(" ")
            session = self._debugger.session()
            rank = rank_of_tid(int(tid or 0))
            with kept_frame(session):
                answer = REQUESTS[request](session, rank)
            result.AppendMessage(json.dumps(answer))
            result.SetStatus(lldb.eReturnStatusSuccessFinishResult)
        except Exception as error:  # LLDB would print a traceback
            result.SetError(sentence_of(error))

    def get_short_help(self) -> str:
        """Return the summary for LLDB's help."""
        return "Answer ranklens-lldb-dap."


def names(session: Session, rank: Optional[int]) -> bool:
    """Make names mean a rank's variables alone, until `settle` or the user's next command; False without a rank."""
    if rank is None:
        settle(session, None)
        return False
    session.modules.visit(session.moment(), rank)
    return True


def settle(session: Session, _: Optional[int]) -> bool:
    """Let LLDB know the code of all ranks again."""
    if session.modules.is_visiting:
        session.modules.settle()
    return True


def runtime(session: Session, rank: Optional[int]) -> list[int]:
    """Return the levels of a rank's frames that are not the program's own: of the MPI runtime, of the C library.

    The program's call of either is left out where it has no source file, which an editor would show in place of the
    program's line.
    """
    if rank is None:
        return []
    moment = session.moment()
    thread = next(thread for thread in session.process if rank_of_tid(int(thread.GetThreadID())) == rank)
    frames = list(itertools.islice(thread, MOST_FRAMES))
    own = user_frame(moment, rank, frames, pc_of)
    end = 0 if own is None else int(own.GetFrameID())
    inside = fold(moment, frames, pc_of).count
    path = runtime_path(moment.table, moment.translator)
    return [
        level
        for level, frame in enumerate(frames)
        if (0 < inside >= level or is_foreign(moment, frame, path, level > end))
        and (level != end - 1 or frame.GetLineEntry().IsValid())
    ]


def is_foreign(moment: ProcessView, frame: Any, path: str, is_outer: bool) -> bool:
    """Whether a frame's code is not a rank's own; of those outside of the program, whether it is the runtime's."""
    owner = moment.translator.owner(pc_of(frame))
    if is_outer:
        return bool(path) and owner.path == path and not is_one_file(moment.table, path)
    return owner.object is None or not moment.table.objects[owner.object].privatized


def pc_of(frame: Any) -> int:
    """Return a frame's program counter."""
    return int(frame.GetPC())


REQUESTS = {"names": names, "settle": settle, "runtime": runtime}
