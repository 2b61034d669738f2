"""A command's first moments: from here on Ctrl-C ends it without a word, as `ending` has it.

Takes a command's name, and what loads and runs it. It imports what Python itself has loaded already, and little else:
before it is in charge, nobody is.
"""

from __future__ import annotations

from pieglobalsfind.shell import signals

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable

    from pieglobalsfind.shell.exit_status import Run


def status_of(name: str, load: Callable[[], Run]) -> int:
    """As `shell.status_of`, which is loaded first."""
    signals.hear()
    from pieglobalsfind.shell import exit_status

    return exit_status.status_of(name, load)
