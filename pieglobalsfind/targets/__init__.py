"""The targets that need no debugger: a live process, a core file and a snapshot.

Takes what the user named; gives a `Target`. It knows nothing of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional, Union

from pieglobalsfind.errors import TargetEndedError, TargetError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.target import Target


def open_target(pid: Optional[int] = None, core: Optional[str] = None, exe: Optional[str] = None) -> Target:
    """Open a process, or a core file or snapshot; `exe` is a file that the core's own path does not lead to.

    Raises `UsageError` unless exactly one of `pid` and `core` is given, `TargetError` if it can't be read.
    """
    if (pid is None) == (core is None):
        raise UsageError("give either a process or a core file")
    if pid is not None:
        if exe is not None:
            raise UsageError("a process knows its own files", "give --exe only with a core file")
        from pieglobalsfind.targets.live import LiveTarget, check_is_process

        check_is_process(pid)
        return LiveTarget(pid)
    from pieglobalsfind.targets.snapshot import SnapshotTarget, is_snapshot

    if is_snapshot(core or ""):
        return SnapshotTarget(core or "")
    from pieglobalsfind.targets.core import CoreTarget

    return CoreTarget(core or "", exe)


def cut_short(target: Target) -> str:
    """A sentence, if the target is a core file that ends too early; "" otherwise."""
    return str(getattr(target, "cut_short", ""))


def check_is_alive(target: Target) -> None:
    """Raises `TargetEndedError` if a live target has ended: that nothing was found says nothing then."""
    check = getattr(target, "check_is_alive", None)
    if check is not None:
        check()
        if not any(True for _ in target.maps()):  # its memory goes before it does
            raise TargetEndedError(f"{target.description} has ended")


def check_is_same(target: Target) -> None:
    """Raises `TargetError` if a live target has executed another program since it was opened."""
    check = getattr(target, "check_program", None)
    if check is not None:
        check()


def in_address_space(target: Target, thread: int) -> Union[Target, Absent]:
    """The target's memory as kernel thread `thread` sees it; 0: as its process does."""
    if not thread or any(known_thread.tid == thread for known_thread in target.threads()):
        return target
    from pieglobalsfind.targets.live import LiveTarget

    others: Mapping[int, Target] = getattr(target, "others", {})
    if thread in others:
        return others[thread]
    if not isinstance(target, LiveTarget):
        return Absent(f"its pages are those of process {thread}", "look at that one")
    try:
        return LiveTarget(thread)
    except TargetError as error:
        return Absent(error.sentence, error.hint)
