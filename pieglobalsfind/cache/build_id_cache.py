"""What was worked out from an ELF file once, kept per build-id for the next start.

Takes and gives bytes under (build-id, kind); what they mean is the caller's, who changes the kind with their form. A
cache that can't be used is no error: then nothing is stored, and nothing is found. Storing removes what nobody has used
for a month, and what has been unused for longest where all is too much; needing no lock, since what is open stays.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Optional

from pieglobalsfind.cache.location import cache_folder
from pieglobalsfind.shell.atomic_file import replacing

MAGIC = b"ranklens index 2\n"
LARGEST = 1 << 30  # bytes of an entry
MOST = 1 << 29  # bytes of all entries; some hundred programs of 10 MB of debug information have as much
UNUSED = 30 * 24 * 3600  # seconds after which an entry is removed
ABANDONED = 3600  # seconds after which nobody writes to a partial file any more
PARTIAL = "partial-"
_ENTRY = re.compile(r"[0-9a-f]+\.[\w.-]{1,64}")
_HEAD = struct.Struct("<Q32s")  # length and SHA-256 of what follows


def load(build_id: bytes, kind: str) -> Optional[bytes]:
    """What was stored, or None; what is damaged, cut short or not ours counts as nothing."""
    path = _path(build_id, kind)
    if path is None:
        return None
    content = _read_own(path)
    start = len(MAGIC) + _HEAD.size
    if content is None or not content.startswith(MAGIC) or len(content) < start:
        return None
    length, digest = _HEAD.unpack_from(content, len(MAGIC))
    data = content[start:]
    if len(data) != length or hashlib.sha256(data).digest() != digest:
        return None
    with suppress(OSError):
        os.utime(path, follow_symlinks=False)  # its time says when it was used
    return data


def store(build_id: bytes, kind: str, data: bytes) -> None:
    """Keep `data`: whole or not at all, also when two write at once."""
    path = _path(build_id, kind)
    if path is None or len(data) > LARGEST:
        return
    with suppress(OSError):
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.geteuid():
                return
        with replacing(path, PARTIAL) as file:
            file.write(MAGIC + _HEAD.pack(len(data), hashlib.sha256(data).digest()) + data)
        _remove_unused(path.parent, path.name)


def _remove_unused(folder: Path, newest: str) -> None:
    """Remove what is too old or too much, but the entry that was just stored."""
    total, now = 0, time.time()
    for modified, size, path in sorted(_own(folder), reverse=True):
        total += size
        limit = ABANDONED if path.name.startswith(PARTIAL) else UNUSED
        if path.name != newest and (total > MOST or modified < now - limit):
            total -= size
            path.unlink(missing_ok=True)


def _own(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """When they were used last, and their bytes: of this user's entries and partial files, and of nothing else."""
    for path in folder.iterdir():
        if path.name.startswith(PARTIAL) or _ENTRY.fullmatch(path.name):
            with suppress(FileNotFoundError):  # somebody else has removed it
                about = path.lstat()
                if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
                    yield about.st_mtime, about.st_size, path


def _read_own(path: Path) -> Optional[bytes]:
    try:
        # a FIFO must not stop us, nor a link lead us elsewhere
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size > LARGEST:
            return None
        try:
            return file.read(LARGEST)
        except OSError:
            return None


def _path(build_id: bytes, kind: str) -> Optional[Path]:
    if not build_id or not re.fullmatch(r"[\w.-]{1,64}", kind):
        return None
    folder = cache_folder("index")
    return None if folder is None else Path(folder) / f"{build_id.hex()}.{kind}"
