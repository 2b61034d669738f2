"""The views in the cache: found again as long as they are used, removed after a month without use.

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

UNUSED = 30 * 24 * 3600  # seconds after which a view is removed
RECENTLY = 3600  # seconds: writing a time to the disk takes as long as many things that sourcing the extension does
REMOVED = "removed-"
_NAME = rf"(?:[0-9a-f]+|none)(?:-[0-9a-f]+)+|{REMOVED}\w+"  # of a view's folder; of what is being removed


def find(view: str) -> bool:
    """Whether a view is there; its folder's time says that it was used within the last hour."""
    folder = os.path.dirname(view)
    with locked(os.path.dirname(folder), fcntl.LOCK_SH):
        try:
            if abs(os.stat(folder).st_mtime - time.time()) > RECENTLY:
                os.utime(folder)
        except FileNotFoundError:
            return False
        return os.path.exists(view)


def remove_unused(folder: str) -> None:
    """Remove views unused for a month, unless another debugger is looking for one just now."""
    with suppress(OSError):
        unused = [name for name in os.listdir(folder) if is_unused(os.path.join(folder, name))]
        if not unused:
            return
        import shutil
        import tempfile

        grave = tempfile.mkdtemp(dir=folder, prefix=REMOVED)
        with locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_ours:
            for name in unused if is_ours else ():
                if is_unused(os.path.join(folder, name)):  # it may have been found meanwhile
                    os.rename(os.path.join(folder, name), os.path.join(grave, name))
        shutil.rmtree(grave, ignore_errors=True)


def is_unused(path: str) -> bool:
    """Whether a path is a view's folder, of this user, unused for a month."""
    try:
        about = os.lstat(path)
    except FileNotFoundError:  # another debugger has removed it
        return False
    is_own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return is_own and bool(re.fullmatch(_NAME, os.path.basename(path))) and about.st_mtime < time.time() - UNUSED


@contextmanager
def locked(folder: str, operation: int) -> Iterator[bool]:
    """Hold a lock of flock(2) on a folder inside; False if it can't be had, on file systems that have none too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _is_locked(descriptor, operation)
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except OSError:
        return False
    return True
