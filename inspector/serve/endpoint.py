"""Where debuggers connect: a port of this host alone, or a Unix socket, for the user's own connections.

Takes what the user named; gives a listening socket, and says whose a connection is. A port of the host is in every
local user's reach: the kernel's table of connections (proc(5), /proc/net/tcp) names the user of each one's other end.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pieglobalsfind.errors import UsageError

HOST = "127.0.0.1"
BACKLOG = 16
CREDENTIALS = struct.Struct("3i")  # struct ucred (unix(7)): pid, uid, gid
LOCAL, REMOTE, UID = 1, 2, 7  # columns of /proc/net/tcp


def listen_on_port(port: int) -> socket.socket:
    """Port 0: any that is free. Raises `UsageError` if it can't be had."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return _bound(listener, (HOST, port), f"port {port}")


def listen_on_path(path: str) -> socket.socket:
    """A socket that its user alone may connect to. Raises `UsageError` if there is something at the path."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        return _bound(listener, path, path)
    finally:
        os.umask(before)


def _bound(listener: socket.socket, address: Any, name: str) -> socket.socket:
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except (OSError, OverflowError, ValueError) as error:
        listener.close()
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"{name} can't be used, {why}", "name another one") from error
    return listener


def is_allowed(client: socket.socket, peer: Any) -> bool:
    """Whether the other end is this user's, or root's."""
    if client.family == socket.AF_UNIX:
        content = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        uid = CREDENTIALS.unpack(content)[1]
        return uid in (os.geteuid(), 0)
    theirs, ours = (written(*each[:2]) for each in (peer, client.getsockname()))
    return any(uid in (os.geteuid(), 0) for uid in users_of(theirs, ours))


def users_of(local: str, remote: str) -> Iterator[int]:
    """The user of each connection of this host between two addresses, as its one end has it."""
    try:
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > UID and (words[LOCAL], words[REMOTE]) == (local, remote):
            yield int(words[UID])


def written(host: str, port: int) -> str:
    """An address as the kernel's table has it: `0100007F:1F90`."""
    return f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
