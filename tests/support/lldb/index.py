"""LLDB's own cache of what it makes of files' symbols and debug information, one for a whole test run.

Without it every LLDB reads the system's libraries anew: a fifth of the time that it takes to print a variable.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RANKLENS_TEST_LLDB_INDEX"  # which folder; without it LLDB keeps nothing


def keep_index_in(folder: Path) -> None:
    """What `index_options` gives from now on, in this process and those that it starts."""
    os.environ[VARIABLE] = str(folder)


def index_options() -> list[str]:
    """Words of LLDB's command line."""
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return []
    settings = ("enable-lldb-index-cache true", f"lldb-index-cache-path {folder}")
    return [word for setting in settings for word in ("-O", f"settings set symbols.{setting}")]
