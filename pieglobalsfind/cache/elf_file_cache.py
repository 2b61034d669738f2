"""What was read from an ELF file once, kept for the next start.

Takes and gives bytes under (state of the file, kind); the caller changes the kind when the form of the bytes changes. A
build-id alone is not a key: any file can claim the build-id of another. A cache that can't be used is not an error:
then nothing is stored, and nothing is found. Storing removes entries that were not used for a month, and the oldest
where all are too large together. It needs no lock: a file that is open stays readable.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from pieglobalsfind.cache.path import cache_folder
from pieglobalsfind.shell.atomic_file import replacing

MAGIC = b"ranklens index 2\n"
LARGEST = 1 << 30  # bytes of an entry
MOST = 1 << 29  # bytes of all entries; some hundred programs of 10 MB of debug information have as much
UNUSED = 30 * 24 * 3600  # seconds after which an entry is removed
ABANDONED = 3600  # seconds after which no process writes to a partial file any more
PARTIAL = "partial-"
_ENTRY = re.compile(r"[0-9a-f]+(-[0-9a-f]+)?\.[\w.-]{1,64}")  # without the second part: of older versions
_HEAD = struct.Struct("<Q32s")  # length and SHA-256 of what follows


@dataclass(frozen=True)
class FileState:
    """One content of one file: its build-id, and what the system says of it (stat(2)).

    The change time stands for the content: every write sets it, and no program can set it back.
    """

    path: str
    build_id: bytes
    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @property
    def name(self) -> str:
        """What cache entries of this content are called."""
        numbers = (self.device, self.inode, self.size, self.modified, self.changed)
        return f"{self.build_id.hex()}-{hashlib.sha256(repr(numbers).encode()).hexdigest()[:32]}"


def state_of(path: str, build_id: bytes) -> Optional[FileState]:
    """The state of a file whose build-id the caller knows; None if nothing can be kept of it."""
    if not build_id:
        return None
    try:
        about = Path(path).stat()
    except (OSError, ValueError):
        return None
    return FileState(path, build_id, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def load(file: Optional[FileState], kind: str) -> Optional[bytes]:
    """What was stored for this content of the file, or None; a damaged or foreign entry counts as nothing."""
    path = _path(file, kind)
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


def store(file: Optional[FileState], kind: str, data: bytes) -> None:
    """Keep `data`, whole or not at all, also when two write at once.

    `file` is the state from before the file was read: where it has changed since, nothing is kept.
    """
    path = _path(file, kind)
    if path is None or file is None or len(data) > LARGEST or state_of(file.path, file.build_id) != file:
        return
    with suppress(OSError):
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.geteuid():
                return
        with replacing(path, PARTIAL) as partial:
            partial.write(MAGIC + _HEAD.pack(len(data), hashlib.sha256(data).digest()) + data)
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
            with suppress(FileNotFoundError):  # another process has removed it
                about = path.lstat()
                if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
                    yield about.st_mtime, about.st_size, path


def _read_own(path: Path) -> Optional[bytes]:
    """The content of a regular file of this user's, None for everything else that may lie there."""
    try:
        # a FIFO must not stop us, nor a link lead us elsewhere
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size > LARGEST:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(about.st_size)  # read() takes memory for all that it is asked for
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _path(file: Optional[FileState], kind: str) -> Optional[Path]:
    if file is None or not re.fullmatch(r"[\w.-]{1,64}", kind):
        return None
    folder = cache_folder("index")
    return None if folder is None else Path(folder) / f"{file.name}.{kind}"
