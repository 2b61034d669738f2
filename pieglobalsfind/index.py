"""What was worked out from an ELF file once, kept per build-id for the next start.

Takes and gives bytes under (build-id, kind); what they mean is the caller's. A cache that can't be used is no error:
then nothing is stored, and nothing is found.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Optional

_MAGIC = b"ranklens index 1\n"
_LARGEST = 1 << 30


def load(build_id: bytes, kind: str) -> Optional[bytes]:
    """What was stored, or None; what is damaged or not ours counts as nothing."""
    path = _path(build_id, kind)
    try:
        if path is None or path.stat().st_uid != os.geteuid() or path.stat().st_size > _LARGEST:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    if not content.startswith(_MAGIC) or hashlib.sha256(content[head:]).digest() != content[len(_MAGIC) : head]:
        return None
    return content[head:]


def store(build_id: bytes, kind: str, data: bytes) -> None:
    """Keep `data`: whole or not at all, also when two write at once."""
    path = _path(build_id, kind)
    if path is None:
        return
    partial = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix="partial-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(data).digest() + data)
        os.replace(partial, path)
    except OSError:
        if partial:
            Path(partial).unlink(missing_ok=True)


def _path(build_id: bytes, kind: str) -> Optional[Path]:
    if not build_id or not re.fullmatch(r"[\w.-]{1,64}", kind):
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError:  # nobody's home
        return None
    return Path(base) / "ranklens" / "index" / f"{build_id.hex()}.{kind}"
