"""The job's files for a debugger that runs on another host: programs, libraries and their debug information, to read.

Handlers of packets: each takes a session and what follows the packet's name; gives the reply. Nothing but these files
can be opened, whatever a client names. Source: GDB's manual, "Host I/O Packets".
"""

from __future__ import annotations

import errno
import os
import re
import struct

from pieglobalsfind.elf.file import open_regular
from pieglobalsfind.errors import ObjectFileError

from .. import framing
from ..framing import LARGEST, hexadecimal
from ..session import ServeSession

OF_DEBUG = re.compile(r"/usr/lib/debug/\.build-id/[0-9a-f]{2}/[0-9a-f]{1,64}(\.debug)?")
MOST_OPEN = 256
MOST_READ = LARGEST // 2 - 64  # bytes that fit into a packet when all of them are escaped
WRITING = 0x3 | 0x200 | 0x400 | 0x8  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND as the protocol numbers them
STAT = struct.Struct(">7I3Q3I")  # struct stat of the protocol ("struct stat")
# By errno of this host: the protocol's number ("Errno Values")
ERRORS = {errno.EPERM: 1, errno.ENOENT: 2, errno.EBADF: 9, errno.EACCES: 13, errno.EINVAL: 22, errno.EMFILE: 24}
UNKNOWN = 9999


def set_file_system(session: ServeSession, arguments: bytes) -> bytes:
    """`vFile:setfs:PID`: names are those that the server gave, whichever process they are of."""
    return b"F0" if session.allowed.files else b""


def open_file(session: ServeSession, arguments: bytes) -> bytes:
    """`vFile:open:NAME,FLAGS,MODE`."""
    if not session.allowed.files:
        return b""
    name, flags, _ = arguments.split(b",")
    path = framing.text_of(name)
    if hexadecimal(flags) & WRITING:
        return _failed(errno.EACCES)
    if len(session.files) >= MOST_OPEN:
        return _failed(errno.EMFILE)
    if not is_allowed(session, path):
        return _failed(errno.ENOENT)
    try:
        descriptor = open_regular(path)
    except ObjectFileError:
        return _failed(errno.ENOENT)
    session.files.add(descriptor)
    return b"F%x" % descriptor


def is_allowed(session: ServeSession, path: str) -> bool:
    """Whether a file is one of the job's, or of their debug information where distributions put it."""
    if OF_DEBUG.fullmatch(path):
        return True
    with session.looking() as moment:
        return path in moment.file_names


def read(session: ServeSession, arguments: bytes) -> bytes:
    """`vFile:pread:FILE,SIZE,OFFSET`."""
    descriptor, size, offset = (hexadecimal(word) for word in arguments.split(b","))
    if descriptor not in session.files:
        return _failed(errno.EBADF)
    try:
        data = os.pread(descriptor, min(size, MOST_READ), offset)
    except (OSError, OverflowError):
        return _failed(errno.EINVAL)
    return b"F%x;%s" % (len(data), framing.escaped(data))


def status(session: ServeSession, arguments: bytes) -> bytes:
    """`vFile:fstat:FILE`."""
    descriptor = hexadecimal(arguments)
    if descriptor not in session.files:
        return _failed(errno.EBADF)
    stat_result = os.fstat(descriptor)
    words = (
        0,
        stat_result.st_ino,
        stat_result.st_mode,
        stat_result.st_nlink,
        stat_result.st_uid,
        stat_result.st_gid,
        0,
    )
    times = (stat_result.st_atime, stat_result.st_mtime, stat_result.st_ctime)
    sizes = (stat_result.st_size, stat_result.st_blksize, stat_result.st_blocks)
    data = STAT.pack(*(word & 0xFFFFFFFF for word in words), *sizes, *(int(time) & 0xFFFFFFFF for time in times))
    return b"F%x;%s" % (len(data), framing.escaped(data))


def close_file(session: ServeSession, arguments: bytes) -> bytes:
    """`vFile:close:FILE`."""
    descriptor = hexadecimal(arguments)
    if descriptor not in session.files:
        return _failed(errno.EBADF)
    session.files.remove(descriptor)
    os.close(descriptor)
    return b"F0"


def _failed(code: int) -> bytes:
    return b"F-1,%x" % ERRORS.get(code, UNKNOWN)
