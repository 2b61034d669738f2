"""Where this user's caches are: the index of ELF files, and the views that GDB loads.

Takes the environment; gives a path. It makes nothing and looks at nothing on the disk.
"""

from __future__ import annotations

import os
from typing import Optional


def cache_folder(name: str) -> Optional[str]:
    """The folder of one cache; None for a user without a home.

    XDG Base Directory Specification: a path in XDG_CACHE_HOME that is relative is to be ignored.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        base = os.path.expanduser("~/.cache")
        if not base.startswith("/"):
            return None
    return os.path.join(base, "ranklens", name)
