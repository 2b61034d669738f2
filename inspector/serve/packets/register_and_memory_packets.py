"""Registers and memory of the current rank.

Handlers of packets: each takes a session and what follows the packet's name; gives the reply.
"""

from __future__ import annotations

from typing import Optional

from pieglobalsfind.errors import RanklensError

from .. import framing
from ..framing import LARGEST, hexadecimal
from ..ranks.thread_control_block import ELSEWHERE, END
from ..session import FAILED, OK, ServeSession
from . import register_encoding

MOST_READ = (LARGEST - 64) // 2  # bytes whose digits fit into a packet


def all_registers(session: ServeSession, arguments: bytes) -> bytes:
    """`g`."""
    rank = session.rank(_suffix(session, arguments))
    return register_encoding.all_values(rank.register_layout, rank.known_registers)


def one_register(session: ServeSession, arguments: bytes) -> bytes:
    """`p NUMBER`."""
    number, _, suffix = arguments.partition(b";")
    rank = session.rank(_suffix(session, b";" + suffix))
    return register_encoding.value(rank.register_layout, hexadecimal(number, 1 << 16), rank.known_registers)


def _suffix(session: ServeSession, arguments: bytes) -> Optional[int]:
    """The rank that LLDB names after a packet."""
    name, _, thread = arguments.strip(b";").partition(b":")
    return session.thread_of(thread) if name == b"thread" else None


def write_registers(session: ServeSession, arguments: bytes) -> bytes:
    """`G`, `P`."""
    session.complain("registers are not written: a rank's are its runtime's")
    return FAILED


def read(session: ServeSession, arguments: bytes) -> bytes:
    """`m ADDRESS,SIZE`: as many bytes as can be had."""
    data = _read(session, arguments)
    return data.hex().encode() if data else FAILED


def read_binary(session: ServeSession, arguments: bytes) -> bytes:
    """`x ADDRESS,SIZE`, as LLDB has it: bytes alone, and of none a probe."""
    if arguments.endswith(b",0"):
        return OK
    data = _read(session, arguments)
    return framing.escaped(data) if data else FAILED


def _read(session: ServeSession, arguments: bytes) -> bytes:
    place, _, digits = arguments.partition(b",")
    address, size = hexadecimal(place), min(hexadecimal(digits), MOST_READ)
    rank = session.rank()
    if ELSEWHERE <= address < END:
        return rank.memory_elsewhere(address, size, session.modules_of(rank.rank.rank).numbers)
    return rank.memory.read(address, size)


def write(session: ServeSession, arguments: bytes) -> bytes:
    """`M ADDRESS,SIZE:DIGITS`."""
    place, _, digits = arguments.partition(b":")
    return _write(session, place, bytes.fromhex(digits.decode("ascii")))


def write_binary(session: ServeSession, arguments: bytes) -> bytes:
    """`X ADDRESS,SIZE:BYTES`."""
    place, _, data = arguments.partition(b":")
    return _write(session, place, framing.unescaped(data))


def _write(session: ServeSession, place: bytes, data: bytes) -> bytes:
    address, _, size = place.partition(b",")
    start, count = hexadecimal(address), hexadecimal(size)
    if count != len(data):
        return FAILED
    rank = session.rank()
    if not session.allowed.write:
        session.complain("memory is not written: start the server with --write")
        return FAILED
    if count == 0:
        return OK
    try:
        rank.memory.write(start, data)
    except RanklensError as error:
        session.complain(str(error))
        return FAILED
    return OK
