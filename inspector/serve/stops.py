"""Why the job stands, what makes it go on, and how a debugger hears of both.

Handlers of packets: each takes a session and what follows the packet's name; gives the reply, or several, or none.
A live job goes on as a whole: nothing steps, and no breakpoint is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pieglobalsfind.errors import RanklensError

from . import packets, registers
from .session import FAILED, FIRST_PID, INTERRUPTED, OK, TRAP, ServeSession

Replies = list[bytes]
STANDS = "a still picture of the job: it can't go on\n"
LOADER = re.compile(r"/ld-linux[^/]*$|/ld-[0-9.]+\.so$|/ld\.so[^/]*$")
# Signals that write a core file: Linux's number (signal(7)) to the protocol's (GDB's include/gdb/signals.def)
SIGNALS = {3: 3, 4: 4, 5: 5, 6: 6, 7: 10, 8: 8, 11: 11, 24: 24, 25: 25, 31: 12}
NO_STEPS = "ranks are not stepped by this server, `continue` lets the whole job go on\n"


def why_stopped(session: ServeSession, arguments: bytes) -> bytes:
    """`?`: what the debugger is shown at first."""
    session.begin()
    number = session.current
    if number is None:
        return FAILED if session.is_lldb else b"W00"  # LLDB 19 crashes at a process that has ended
    return first_stop(session, number)


def first_stop(session: ServeSession, number: int) -> bytes:
    """The reply for a rank that is looked at for the first time: of a core file the signal that ended it."""
    return stop(session, number, SIGNALS.get(session.rank(number).signal or 0, TRAP))


def stop(session: ServeSession, number: int, signal: int) -> bytes:
    """The reply for a rank that stands."""
    session.current = number
    parts = [b"T%02xthread:%s;" % (signal, session.thread_id(number))]
    if session.is_lldb:
        parts += _for_lldb(session, number)
    return b"".join(parts)


def _for_lldb(session: ServeSession, number: int) -> Iterator[bytes]:
    """The thread's name, which says where it waits, and its registers: LLDB asks for fewer then."""
    rank = session.rank(number)
    yield b"hexname:%s;" % packets.as_hex(f"rank {number}: {rank.state}")
    yield b"threads:%x;thread-pcs:%x;" % (FIRST_PID + number, rank.pc)
    yield from (b"%02x:%s;" % value for value in registers.known_values(rank.known_registers))
    yield b"reason:signal;"


# ---- going on ----


def resume(session: ServeSession, arguments: bytes) -> Replies:
    """`c`, `C`."""
    return _continued(session)


def step(session: ServeSession, arguments: bytes) -> Replies:
    """`s`, `S`."""
    return _refused(session, NO_STEPS)


def v_cont(session: ServeSession, arguments: bytes) -> Replies:
    """`vCont;c:...`."""
    if any(action[:1] in (b"s", b"S", b"r") for action in arguments.split(b";")):
        return _refused(session, NO_STEPS)
    return _continued(session)


def v_cont_query(session: ServeSession, arguments: bytes) -> bytes:
    """`vCont?`."""
    return b"vCont;c;C;s;S;t"


def _refused(session: ServeSession, why: str) -> Replies:
    """The same stop again, with a line in the debugger's console."""
    number = session.current
    if number is None:
        return [FAILED]
    if session.source.has_ended:
        return _ended(session)
    return [_console(why), stop(session, number, TRAP)]


def _continued(session: ServeSession) -> Replies:
    if session.current is None:
        return [FAILED]
    if not session.source.is_live:
        return _refused(session, STANDS)
    if session.source.has_ended:
        return _ended(session)
    session.is_running = True
    session.settle()
    return []


def interrupted(session: ServeSession) -> Replies:
    """Ctrl-C: the job stands again, and is read again."""
    if not session.is_running:
        return []
    session.is_running = False
    try:
        session.settle()
    except RanklensError as error:
        if session.source.has_ended:
            return _ended(session)
        session.is_running = True
        return [_console(f"{error}; it goes on\n")]
    number = session.running_rank()
    if number is not None:
        return [stop(session, number, INTERRUPTED)]
    return _gone(session)


def _gone(session: ServeSession) -> Replies:
    """For a rank that is not in the job any more, which all attached ones are."""
    number = session.current if session.current is not None else session.attached[0]
    try:
        session.moment.rank(number).check()
        why = ""
    except RanklensError as error:
        why = f"{error}\n"
    return [_console(why), *_exit(session, number)]


def job_ended(session: ServeSession) -> Replies:
    """The job's processes have all ended while it ran."""
    if not session.is_running:
        return []
    session.is_running = False
    return _ended(session)


def _ended(session: ServeSession) -> Replies:
    number = session.current
    if number is None:
        return [FAILED]
    why = f"{session.source.name} has ended; only the process that started it knows its exit status\n"
    return [_console(why), *_exit(session, number)]


def _exit(session: ServeSession, number: int) -> Replies:
    reply = b"W00;process:%x" % (FIRST_PID + number) if session.is_multiprocess else b"W00"
    session.attached.remove(number)
    session.current = session.attached[0] if session.attached else None
    session.source.let_go(session)
    return [reply]


def _console(text: str) -> bytes:
    return b"O" + packets.as_hex(text)


# ---- what is not done ----


def breakpoint_packet(session: ServeSession, arguments: bytes) -> bytes:
    """`Z`, `z`: only the loader's own hook, which nothing passes through while a debugger looks, may be set."""
    try:
        kind, address = arguments.split(b",")[:2]
        where = packets.hexadecimal(address)
    except ValueError:
        return FAILED
    if kind not in (b"0", b"1"):
        return b""
    path = session.rank().view.translator.owner(where).path
    if LOADER.search(path):
        return OK
    session.complain("breakpoints are not set through this server, the debugger's extension sets them")
    return FAILED


def remove_breakpoint(session: ServeSession, arguments: bytes) -> bytes:
    """`z`: nothing was set."""
    return OK


def refuse_kill(session: ServeSession, arguments: bytes) -> bytes:
    """`vKill`, `k`: the job is not the debugger's to end."""
    session.complain("this server does not kill the job: it goes on without the debugger")
    return FAILED
