"""What was worked out from an ELF file once, kept per build-id for the next start.

Takes and gives bytes under (build-id, kind); what they mean is the caller's, who changes the kind with their form. A
cache that can't be used is no error: then nothing is stored, and nothing is found.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import tempfile
from pathlib import Path
from typing import Optional

from pieglobalsfind.cache_folder import cache_folder

MAGIC = b"ranklens index 2\n"
LARGEST = 1 << 30  # bytes of an entry
_HEAD = struct.Struct("<Q32s")  # length and SHA-256 of what follows


def load(build_id: bytes, kind: str) -> Optional[bytes]:
    """What was stored, or None; what is damaged, cut short or not ours counts as nothing."""
    path = _path(build_id, kind)
    content = _read_own(path) if path is not None else None
    start = len(MAGIC) + _HEAD.size
    if content is None or not content.startswith(MAGIC) or len(content) < start:
        return None
    length, digest = _HEAD.unpack_from(content, len(MAGIC))
    data = content[start:]
    return data if len(data) == length and hashlib.sha256(data).digest() == digest else None


def store(build_id: bytes, kind: str, data: bytes) -> None:
    """Keep `data`: whole or not at all, also when two write at once."""
    path = _path(build_id, kind)
    if path is None or len(data) > LARGEST:
        return
    partial = ""
    try:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.geteuid():
                return
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix="partial-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(MAGIC + _HEAD.pack(len(data), hashlib.sha256(data).digest()) + data)
        Path(partial).replace(path)
    except BaseException as error:  # also when somebody interrupts us
        if partial:
            Path(partial).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise


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
    return None if folder is None else folder / f"{build_id.hex()}.{kind}"
