"""Answer why the job is stopped, continue it, and report its stops and its end.

Handlers of packets: each takes a session and what follows the packet's name; gives the reply, or several, or none.
A live job goes on as a whole here; control_packets.py has what a debugger does that controls ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pieglobalsfind.errors import RanklensError

from .. import framing
from ..session import FAILED, FIRST_PID, INTERRUPTED, OK, TRAP, ServeSession
from . import register_encoding

Replies = list[bytes]
STANDS = "a still picture of the job: it can't go on\n"
LOADER = re.compile(r"/ld-linux[^/]*$|/ld-[0-9.]+\.so$|/ld\.so[^/]*$")
# Signals that write a core file: Linux's number (signal(7)) to the protocol's (GDB's include/gdb/signals.def)
SIGNALS = {3: 3, 4: 4, 5: 5, 6: 6, 7: 10, 8: 8, 11: 11, 24: 24, 25: 25, 31: 12}
NO_STEPS = "start the server with --control for steps; `continue` lets the whole job go on\n"


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


def stop(session: ServeSession, number: int, signal: int, reason: bytes = b"") -> bytes:
    """The reply for a rank that stands; `reason` is what it says of why."""
    session.current = number
    parts = [b"T%02xthread:%s;" % (signal, session.thread_id(number))]
    if session.is_lldb:
        parts += _for_lldb(session, number)
        reason = reason or b"reason:signal;"
    return b"".join((*parts, reason))


def _for_lldb(session: ServeSession, number: int) -> Iterator[bytes]:
    """The thread's name, which says where it waits, and its registers: LLDB asks for fewer then."""
    rank = session.rank(number)
    yield b"hexname:%s;" % framing.as_hex(f"rank {number}: {rank.state}")
    yield b"threads:%x;thread-pcs:%x;" % (FIRST_PID + number, rank.pc)
    yield from (
        b"%02x:%s;" % value for value in register_encoding.known_values(rank.register_layout, rank.known_registers)
    )


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
    return [console(why), stop(session, number, TRAP)]


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
        return [console(f"{error}; it goes on\n")]
    return standing(session)


def standing(session: ServeSession) -> Replies:
    """The job stands because of Ctrl-C: shown is a rank that runs."""
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
    return [console(why), *_exit(session, number)]


def rank_exited(session: ServeSession, number: int, status: int) -> Replies:
    """The rank's main has returned."""
    return _exit(session, number, status)


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
    return [console(why), *_exit(session, number)]


def _exit(session: ServeSession, number: int, status: int = 0) -> Replies:
    reply = b"W%02x" % status
    if session.is_multiprocess:
        reply += b";process:%x" % (FIRST_PID + number)
    session.is_running = False
    session.detach(number)
    return [reply]


def console(text: str) -> bytes:
    """A line in the debugger's console."""
    return b"O" + framing.as_hex(text)


# ---- what is not done ----


def breakpoint_packet(session: ServeSession, arguments: bytes) -> bytes:
    """`Z`, `z`: only the loader's own hook, which nothing passes through while a debugger looks, may be set."""
    try:
        kind, address = arguments.split(b",")[:2]
        where = framing.hexadecimal(address)
    except ValueError:
        return FAILED
    if kind not in (b"0", b"1"):
        return b""
    path = session.rank().view.translator.owner(where).path
    if LOADER.search(path):
        return OK
    session.complain("start the server with --control for breakpoints")
    return FAILED


def remove_breakpoint(session: ServeSession, arguments: bytes) -> bytes:
    """`z`: nothing was set."""
    return OK


def refuse_kill(session: ServeSession, arguments: bytes) -> bytes:
    """`vKill`, `k`: the job is not the debugger's to end."""
    session.complain("this server does not kill the job: it goes on without the debugger")
    return FAILED
