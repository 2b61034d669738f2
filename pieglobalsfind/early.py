"""A command's first moments: from here on Ctrl-C ends it without a word, as `shell` has it later.

Takes a command's name, and what loads and runs it. It imports what Python itself has loaded already, and little else:
before it is in charge, nobody is.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable

    from pieglobalsfind.shell import Run


def status_of(name: str, load: Callable[[], Run]) -> int:
    """As `shell.status_of`, which is loaded first."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else nobody is to interrupt us, or somebody else cares
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number))
    from pieglobalsfind import shell

    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    return shell.status_of(name, load)
