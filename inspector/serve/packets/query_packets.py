"""Answer what a debugger asks when it connects, and its questions about processes and threads.

Handlers of packets: each takes a session and what follows the packet's name; gives the reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.targets.live import LiveTarget

from ..framing import LARGEST, as_hex, escaped, hexadecimal
from ..session import FAILED, FIRST_PID, OK, ServeSession
from . import documents, register_encoding, stop_and_resume_packets

FEATURES = (
    "QStartNoAckMode+;vContSupported+;qXfer:features:read+;qXfer:auxv:read+;qXfer:libraries-svr4:read+;"
    "qXfer:exec-file:read+;qXfer:threads:read+;qXfer:osdata:read+"
)
MOST_LISTED = 64  # threads in one reply


def supported(session: ServeSession, arguments: bytes) -> bytes:
    """`qSupported`: LLDB names processors there, and has one process a connection."""
    wanted = arguments.lstrip(b":").split(b";")
    session.is_lldb = any(feature.startswith(b"xmlRegisters=") and b"mips" in feature for feature in wanted)
    session.is_multiprocess = b"multiprocess+" in wanted and not session.is_lldb
    more = ";multiprocess+" if session.is_multiprocess else ""
    more += ";swbreak+;hwbreak+" if session.allowed.control else ""
    return f"PacketSize={LARGEST:x};{FEATURES}{more}".encode()


def no_acknowledgement(session: ServeSession, arguments: bytes) -> bytes:
    """`QStartNoAckMode`: from the next packet on."""
    session.acknowledges = False
    return OK


def extended(session: ServeSession, arguments: bytes) -> bytes:
    """`!`."""
    return OK


def select(session: ServeSession, arguments: bytes) -> bytes:
    """`Hg`, `Hc`: the rank that is meant from now on."""
    number = session.thread_of(arguments[1:])
    if number is None:
        return OK
    if number not in session.attached:
        return FAILED
    if arguments[:1] == b"g":
        session.current = number
    return OK


def is_alive(session: ServeSession, arguments: bytes) -> bytes:
    """`T`."""
    return OK if session.thread_of(arguments) in session.attached else FAILED


def current(session: ServeSession, arguments: bytes) -> bytes:
    """`qC`."""
    session.begin()
    return FAILED if session.current is None else b"QC" + session.thread_id(session.current)


def is_attached(session: ServeSession, arguments: bytes) -> bytes:
    """`qAttached`: the job was there before the debugger, which detaches from it in the end."""
    return b"1"


def attach(session: ServeSession, arguments: bytes) -> bytes:
    """`vAttach;PID`."""
    try:
        number = session.number_of(hexadecimal(arguments))
        session.attach(number)
    except RanklensError as error:
        session.complain(str(error))
        return b"E." + str(error).encode("ascii", "replace")
    return stop_and_resume_packets.first_stop(session, number)


def detach(session: ServeSession, arguments: bytes) -> bytes:
    """`D`, `D;PID`: the job goes on after the last one."""
    if not arguments:
        for number in tuple(session.attached):
            session.detach(number)
        return OK
    session.detach(session.number_of(hexadecimal(arguments[1:])))
    return OK


def first_threads(session: ServeSession, arguments: bytes) -> bytes:
    """`qfThreadInfo`: for clients that read no documents; an empty list would be taken for process 1."""
    session.begin()
    listed = sorted(session.attached)
    if not listed:
        return FAILED
    session.listed = len(listed[:MOST_LISTED])
    return b"m" + b",".join(map(session.thread_id, listed[:MOST_LISTED]))


def more_threads(session: ServeSession, arguments: bytes) -> bytes:
    """`qsThreadInfo`."""
    listed = sorted(session.attached)[session.listed : session.listed + MOST_LISTED]
    session.listed += len(listed)
    return b"m" + b",".join(map(session.thread_id, listed)) if listed else b"l"


def thread_state(session: ServeSession, arguments: bytes) -> bytes:
    """`qThreadExtraInfo`: where the rank waits."""
    number = session.thread_of(arguments.lstrip(b","))
    return as_hex(f"rank {number}: {session.rank(number).state}")


def thread_local_address(session: ServeSession, arguments: bytes) -> bytes:
    """`qGetTLSAddr:THREAD,OFFSET,IDENTITY`."""
    thread, offset, identity = arguments.split(b",")
    rank = session.rank(session.thread_of(thread))
    return b"%x" % rank.thread_local(hexadecimal(identity), hexadecimal(offset))


# ---- documents ----


def transfer(session: ServeSession, arguments: bytes) -> bytes:
    """`qXfer:OBJECT:read:ANNEX:OFFSET,SIZE`; the beginning makes the document, the rest is of the same one."""
    kind, _, rest = arguments.partition(b":read:")
    annex, _, window = rest.rpartition(b":")
    offset_text, _, size_text = window.partition(b",")
    make = DOCUMENTS.get(kind)
    if make is None or not rest:
        return b""
    offset, size = hexadecimal(offset_text), min(hexadecimal(size_text), LARGEST // 2 - 64)
    key = kind + b":" + annex
    if offset == 0 or key not in session.documents:
        document = make(session, annex)
        if document is None:
            return b"E00"
        session.documents = {key: document}
    part = session.documents[key][offset : offset + size]
    return (b"m" if offset + size < len(session.documents[key]) else b"l") + escaped(part)


def _features(session: ServeSession, annex: bytes) -> Optional[bytes]:
    if annex != b"target.xml":
        return None
    session.begin()
    if session.is_lldb and session.current is not None:
        rank = session.rank()
        return register_encoding.description_of(
            rank.register_layout, rank.known_registers, session.allowed.control
        ).encode()
    return register_encoding.description(session.source.registers).encode()


def _auxiliary_vector(session: ServeSession, annex: bytes) -> Optional[bytes]:
    """GDB asks for it of a new inferior before it selects one: that is the one whose program it asked for last."""
    number = session.described if session.described in session.attached else session.current
    session.described = None
    return session.rank(number).auxiliary_vector


def _libraries(session: ServeSession, annex: bytes) -> Optional[bytes]:
    every = len(session.attached) <= FEW
    rank = session.rank()
    if isinstance(rank.view.target, LiveTarget):
        session.libraries_of[rank.rank.rank] = rank.view.target.pid
    libraries = list(rank.libraries(every))
    modules = session.modules_of(rank.rank.rank)
    modules.learn(rank.modules(libraries))
    order = modules.numbers
    libraries.sort(key=lambda library: order.get(library.identity, len(order) + 1))
    return _encoded(documents.library_list(libraries, rank.main_identity))


FEW = 8  # ranks whose libraries with hooks make no difference


def _program(session: ServeSession, annex: bytes) -> Optional[bytes]:
    session.begin()
    number = session.number_of(hexadecimal(annex)) if annex else session.current
    session.described = number
    return session.rank(number).program_name.encode("utf-8", "surrogateescape")


def _threads(session: ServeSession, annex: bytes) -> Optional[bytes]:
    session.begin()
    ranks = ((session.thread_id(number).decode(), session.moment.rank(number)) for number in sorted(session.attached))
    return _encoded(documents.thread_list(ranks))


def _tables(session: ServeSession, annex: bytes) -> Optional[bytes]:
    if annex == b"":
        return _encoded(documents.type_table())
    if annex != b"processes":
        return None
    with session.looking() as moment:
        return _encoded(documents.process_table((FIRST_PID + number, moment.rank(number)) for number in moment.numbers))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


DOCUMENTS: dict[bytes, Callable[[ServeSession, bytes], Optional[bytes]]] = {
    b"features": _features,
    b"auxv": _auxiliary_vector,
    b"libraries-svr4": _libraries,
    b"exec-file": _program,
    b"threads": _threads,
    b"osdata": _tables,
}
