"""The code that the kernel puts into every process (vdso(7)), as a file that unwind tables can be read from.

Takes a target and a pc; gives the file and the p_vaddr there. A rank that asks for the time is often in it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Optional

from pieglobalsfind.memory_map import mapping_at
from pieglobalsfind.target import Target, read_or_none

NAME = "[vdso]"
LARGEST = 1 << 20  # bytes; it has a few pages


def vdso_place(target: Target, pc: int) -> Optional[tuple[str, int]]:
    """None if the pc lies elsewhere, or what lies there can't be read."""
    mapping = mapping_at(target.maps(), pc)
    if mapping is None or mapping.path != NAME or mapping.end - mapping.start > LARGEST:
        return None
    content = read_or_none(target, mapping.start, mapping.end - mapping.start)
    return (_file(content), pc - mapping.start) if content is not None else None


@lru_cache(maxsize=8)
def _file(content: bytes) -> str:
    """A file without a name, which stays as long as this process."""
    descriptor = os.memfd_create("vdso", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    return f"/proc/self/fd/{descriptor}"
