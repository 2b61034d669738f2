"""Makes the folder for this LLDB's links to object files, and removes those of LLDBs that have ended.

Gives folders that no other user can write to. LLDB reads files late, and runs no code of ours at its end.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "ranklens-lldb-"
_NAME = re.compile(PREFIX + r"(\d+)-\w+")


def make_folder() -> Path:
    """A new folder of this LLDB's."""
    remove_abandoned(Path(tempfile.gettempdir()))
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove_abandoned(base: Path) -> None:
    """Remove our account's folders whose LLDB has ended."""
    with suppress(OSError):
        for folder in base.glob(PREFIX + "*"):
            named = _NAME.fullmatch(folder.name)
            if named and folder.lstat().st_uid == os.geteuid() and not Path(f"/proc/{named.group(1)}").exists():
                shutil.rmtree(folder, ignore_errors=True)
