"""The framing of the Remote Serial Protocol: bytes of a client to packets, replies to bytes.

Takes what a client sends, in pieces of any size; believes neither a length nor a checksum. It knows no packet's
meaning. Source: GDB's manual, "Overview" of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from pieglobalsfind.errors import RanklensError

LARGEST = 1 << 16  # bytes of a packet's content, as `qSupported` promises
START, END, ESCAPE, REPEAT, FLIP = 0x24, 0x23, 0x7D, 0x2A, 0x20
CONTROL_C = 0x03
ACCEPTED, REFUSED = b"+", b"-"


class ProtocolError(RanklensError):
    """A client speaks no such protocol; its connection ends."""


@dataclass(frozen=True)
class Packet:
    """A whole packet with the right checksum; `content` is as it was sent, escapes included."""

    content: bytes


@dataclass(frozen=True)
class Damaged:
    """A packet with a wrong checksum."""


@dataclass(frozen=True)
class Interrupt:
    """The byte 0x03 between packets: Ctrl-C."""


@dataclass(frozen=True)
class SendAgain:
    """The byte `-` between packets: the client did not get the last reply whole."""


Event = Union[Packet, Damaged, Interrupt, SendAgain]


class Splitter:
    """Splits the bytes of one connection into events."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what is complete; raises `ProtocolError` for a packet larger than `LARGEST`."""
        self._pending += data
        while self._pending:
            first = self._pending[0]
            if first != START:
                del self._pending[0]
                if first == CONTROL_C:
                    yield Interrupt()
                elif first == REFUSED[0]:
                    yield SendAgain()
                continue
            end = self._pending.find(END, 1, LARGEST + 2)
            if end < 0 and len(self._pending) > LARGEST + 1:
                raise ProtocolError(f"a packet has more than {LARGEST} bytes")
            if end < 0 or len(self._pending) < end + 3:
                return
            content, sent = bytes(self._pending[1:end]), bytes(self._pending[end + 1 : end + 3])
            del self._pending[: end + 3]
            yield Packet(content) if sent.lower() == b"%02x" % checksum(content) else Damaged()


def checksum(content: bytes) -> int:
    """The sum of all bytes, modulo 256."""
    return sum(content) & 0xFF


def framed(content: bytes) -> bytes:
    """A reply as it is sent; `content` is escaped already."""
    return b"$%s#%02x" % (content, checksum(content))


def escaped(data: bytes) -> bytes:
    """Binary data of a reply."""
    if not any(byte in data for byte in b"#$*}"):
        return data
    reply = bytearray()
    for byte in data:
        if byte in (START, END, ESCAPE, REPEAT):
            reply += bytes((ESCAPE, byte ^ FLIP))
        else:
            reply.append(byte)
    return bytes(reply)


def unescaped(data: bytes) -> bytes:
    """Binary data of a request; an escape without a byte after it stands for nothing."""
    first, *rest = data.split(bytes((ESCAPE,)))
    # What follows an escape may be empty where two of them follow one another, which no client sends.
    return first + b"".join(bytes((piece[0] ^ FLIP,)) + piece[1:] for piece in rest if piece)


def hexadecimal(data: bytes, most: int = 1 << 64) -> int:
    """The number that a client wrote; raises `ValueError` for anything else, and for what is not below `most`."""
    if not data or len(data) > 16 or any(digit not in b"0123456789abcdefABCDEF" for digit in data):
        raise ValueError("not a hexadecimal number")
    value = int(data, 16)
    if value >= most:
        raise ValueError("a number that is too large")
    return value


def text_of(data: bytes) -> str:
    """The text whose bytes a client wrote as hexadecimal digits; raises `ValueError`."""
    return bytes.fromhex(data.decode("ascii")).decode("utf-8", "surrogateescape")


def as_hex(text: str) -> bytes:
    """A text for the client, its bytes as hexadecimal digits."""
    return text.encode("utf-8", "surrogateescape").hex().encode()
