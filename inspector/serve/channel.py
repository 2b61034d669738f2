"""One client: its bytes in and out, the packets in them, and the session that answers.

Takes two file descriptors; never waits for a client that does not read. A client that sends something else
than packets loses its connection, and whatever goes wrong in an answer is answered as an error.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Optional

from . import dispatch
from .framing import ACCEPTED, REFUSED, Damaged, Event, Interrupt, Packet, ProtocolError, SendAgain, Splitter, framed
from .packets import control_packets, stop_and_resume_packets
from .packets.stop_and_resume_packets import Replies
from .session import ServeSession

CHUNK = 1 << 16


class ClientChannel:
    """A client; `has_ended` once it is gone, and it has let go of the job then."""

    def __init__(self, source: int, sink: int, session: ServeSession) -> None:
        self.source = source
        self.sink = sink
        self.session = session
        self.has_ended = False
        self._splitter = Splitter()
        self._unsent = b""
        self._last = b""
        for descriptor in (source, sink):
            os.set_blocking(descriptor, False)

    @property
    def is_sending(self) -> bool:
        """Whether it has replies that the client has not taken: nothing more is read until it has."""
        return bool(self._unsent)

    def receive(self) -> None:
        """Read what there is, and answer it."""
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.end()
            return
        try:
            events = list(self._splitter.feed(data))
            for event, following in zip(events, (*events[1:], None)):
                if not self._comes_again(event, following):
                    self._handle(event)
        except ProtocolError as error:
            self.session.complain(f"{error.sentence}: its connection is closed")
            self.end()

    def _comes_again(self, event: Event, following: Optional[Event]) -> bool:
        """Whether a client has sent a packet again because we were not there yet: it expects one reply."""
        return self.session.acknowledges and isinstance(event, Packet) and event == following

    def _handle(self, event: Event) -> None:
        if isinstance(event, Interrupt):
            self._send(dispatch.interrupted(self.session))
        elif isinstance(event, SendAgain):
            self._write(self._last)
        elif isinstance(event, Damaged):
            if not self.session.acknowledges:
                raise ProtocolError("a packet has a wrong checksum")
            self._write(REFUSED)
        elif isinstance(event, Packet):
            if self.session.acknowledges:
                self._write(ACCEPTED)
            self._send(dispatch.replies_to(self.session, event.content))

    def notice(self) -> None:
        """Threads of a job that is controlled have stopped."""
        self._send(control_packets.noticed(self.session))

    def job_ended(self) -> None:
        """Tell a client that waits for the job."""
        self._send(stop_and_resume_packets.job_ended(self.session))

    def _send(self, replies: Replies) -> None:
        for reply in replies:
            self._last = framed(reply)
            self._write(self._last)

    def _write(self, data: bytes) -> None:
        self._unsent += data
        self.flush()

    def flush(self) -> None:
        """Send as much as the client takes now."""
        while self._unsent and not self.has_ended:
            try:
                sent = os.write(self.sink, self._unsent)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                self.end()
                return
            self._unsent = self._unsent[sent:]

    def end(self) -> None:
        """Let go of the job, and of the client."""
        if self.has_ended:
            return
        self.has_ended = True
        self._unsent = b""
        self.session.close()
        for descriptor in {self.source, self.sink}:
            with suppress(OSError):
                os.close(descriptor)
