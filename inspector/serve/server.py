"""The server's loop: clients, the socket where they come from, and the end of the job's processes.

Takes the job and what the user allows; waits for whatever comes first. One thread does everything: ptrace(2) binds
stopped threads to it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Optional

from .channel import CHUNK, ClientChannel
from .endpoint import is_allowed
from .ranks.served_job import ServedJob, ended_descriptor
from .session import Permissions, ServeSession

MOST_CLIENTS = 64
LOOK_AGAIN = 1000  # milliseconds, where the kernel does not tell when a process ends


class Server:
    """Serves clients; `complain` prints a sentence for the user."""

    def __init__(self, source: ServedJob, allowed: Permissions, complain: Callable[[str], None]) -> None:
        self._source = source
        self._allowed = allowed
        self._complain = complain
        self._channels: list[ClientChannel] = []
        self._ends = {pid: ended_descriptor(pid) for pid in source.pids}
        self._stops = stops_descriptor() if allowed.control else -1

    def serve_one(self, source: int, sink: int) -> None:
        """Until the client that reads and writes these descriptors is gone."""
        self._channels.append(ClientChannel(source, sink, ServeSession(self._source, self._allowed, self._complain)))
        while self._channels:
            self._turn(None)

    def serve_many(self, listener: socket.socket, port: int) -> None:
        """Every client that connects; ended by a signal."""
        listener.setblocking(False)
        while True:
            if listener.fileno() in self._turn(listener.fileno()):
                self._accept(listener, port)

    def _turn(self, listener: Optional[int]) -> set[int]:
        """Wait, and serve what has come; returns the descriptors that were ready."""
        poll = select.poll()
        if listener is not None:
            poll.register(listener, select.POLLIN)
        for channel in self._channels:
            if channel.is_sending:
                poll.register(channel.sink, select.POLLOUT)
            else:
                poll.register(channel.source, select.POLLIN)
        for descriptor in (*self._ends.values(), self._stops):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(LOOK_AGAIN if -1 in self._ends.values() else None)}
        if self._stops in ready:
            os.read(self._stops, CHUNK)
            for channel in self._channels:
                channel.notice()
        self._notice_ends(ready)
        for channel in tuple(self._channels):
            if channel.is_sending and channel.sink in ready:
                channel.flush()
            elif channel.source in ready:
                channel.receive()
        self._channels = [channel for channel in self._channels if not channel.has_ended]
        return ready

    def _notice_ends(self, ready: set[int]) -> None:
        ended = [pid for pid, descriptor in self._ends.items() if descriptor in ready]
        for pid in ended:
            os.close(self._ends.pop(pid))
        if (ended or -1 in self._ends.values()) and self._source.has_ended:
            for channel in self._channels:
                channel.job_ended()

    def _accept(self, listener: socket.socket, port: int) -> None:
        with suppress(OSError):
            client, peer = listener.accept()
            with client:
                most = 1 if self._allowed.control else MOST_CLIENTS
                if len(self._channels) >= most or not is_allowed(client, peer):
                    self._complain("a connection of another user, or one too many, is refused")
                    return
                if client.family != socket.AF_UNIX:
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                descriptor = client.detach()
            session = ServeSession(self._source, self._allowed, self._complain, port)
            self._channels.append(ClientChannel(descriptor, descriptor, session))

    def close(self) -> None:
        """Let go of all clients and of the job."""
        for channel in self._channels:
            channel.end()
        self._source.close()


def stops_descriptor() -> int:
    """A file descriptor that can be read once a traced thread has stopped: the kernel tells by SIGCHLD (ptrace(2))."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader
