"""The views in the cache: found again as long as they are used, removed once nobody has used them for a month.

Takes paths of views. A lock on the folder keeps finding and removing apart, so that no debugger loses a view that it
has just found. It never removes what is not the user's own, or not named as views are.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNUSED = 30 * 24 * 3600  # seconds after which a view is removed
REMOVED = "removed-"
_NAME = re.compile(rf"(?:[0-9a-f]+|none)(?:-[0-9a-f]+)+|{REMOVED}\w+")  # of a view's folder; of what is being removed


def find(view: Path) -> bool:
    """Whether a view is there; its folder's time says that it was used now."""
    with locked(view.parent.parent, fcntl.LOCK_SH):
        try:
            os.utime(view.parent)
        except FileNotFoundError:
            return False
        return view.exists()


def remove_unused(folder: Path) -> None:
    """Remove the views that nobody has found for a month, unless somebody is looking for one just now."""
    with suppress(OSError):
        unused = [one for one in folder.iterdir() if is_unused(one)]
        if not unused:
            return
        import shutil
        import tempfile

        grave = Path(tempfile.mkdtemp(dir=folder, prefix=REMOVED))
        with locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_ours:
            for one in filter(is_unused, unused if is_ours else ()):  # it may have been found meanwhile
                one.rename(grave / one.name)
        shutil.rmtree(grave, ignore_errors=True)


def is_unused(path: Path) -> bool:
    """Whether a path is a view's folder, of this user, that nobody has found for a month."""
    try:
        about = path.lstat()
    except FileNotFoundError:  # somebody else has removed it
        return False
    is_own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return is_own and bool(_NAME.fullmatch(path.name)) and about.st_mtime < time.time() - UNUSED


@contextmanager
def locked(folder: Path, operation: int) -> Iterator[bool]:
    """Hold a lock of flock(2) on a folder inside; False if it can't be had, on file systems that have none too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield is_locked(descriptor, operation)
    finally:
        os.close(descriptor)


def is_locked(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except OSError:
        return False
    return True
