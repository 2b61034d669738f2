"""The targets that need no debugger: a live process and a core file.

Takes what the user named; gives a `Target`. It knows nothing of ranks.
"""

from __future__ import annotations

from typing import Optional

from pieglobalsfind.errors import UsageError
from pieglobalsfind.target import Target


def open_target(pid: Optional[int] = None, core: Optional[str] = None, exe: Optional[str] = None) -> Target:
    """Open a process or a core file; `exe` is a file that the core's own path does not lead to.

    Raises `UsageError` unless exactly one of `pid` and `core` is given, `TargetError` if it can't be read.
    """
    if (pid is None) == (core is None):
        raise UsageError("give either a process or a core file")
    if pid is not None:
        if exe is not None:
            raise UsageError("a process knows its own files", "give --exe only with --core")
        from pieglobalsfind.targets.live import LiveTarget

        return LiveTarget(pid)
    from pieglobalsfind.targets.core import CoreTarget

    return CoreTarget(core or "", exe)
