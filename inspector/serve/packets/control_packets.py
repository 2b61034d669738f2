"""Answer packets that set breakpoints and watchpoints and step ranks, and report the stops that follow.

Handlers of packets, for a connection whose job is a `ControlledJob`: each takes a session and what follows the packet's
name; gives the reply, or several, or none while the job runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Optional

from pieglobalsfind.errors import NotStoppableError, RanklensError
from pieglobalsfind.target import read_or_none

from ..control.controlled_job import ControlledJob
from ..control.rank_stops import EXITED, LEFT, SIGNALLED, TRAPPED, WATCHED, RankStop
from ..control.watchpoints import ACCESS, WRITE, Watch
from ..framing import hexadecimal
from ..ranks.served_job import BREATH, PATIENCE
from ..session import FAILED, OK, TRAP, ServeSession
from . import stop_and_resume_packets
from .stop_and_resume_packets import SIGNALS, Replies

SOFTWARE = b"0"
WATCHES = {b"2": WRITE, b"4": ACCESS}
OF_LINUX = {ours: number for number, ours in SIGNALS.items()}
NO_RANGE = range(0)
TOP = 1 << 47  # of addresses that a program has
REASONS = {TRAPPED: b"breakpoint", WATCHED: b"watchpoint", SIGNALLED: b"signal"}


def job_of(session: ServeSession) -> ControlledJob:
    """The job of a connection that controls it."""
    assert isinstance(session.source, ControlledJob)
    return session.source


# ---- what is set ----


def insert(session: ServeSession, arguments: bytes) -> bytes:
    """`Z TYPE,ADDRESS,SIZE`: for the current rank."""
    kind, address, size = _place(arguments)
    rank, job = session.rank(), job_of(session)
    number = rank.rank.rank
    if kind == SOFTWARE:
        place = rank.memory.place(address)
        mapping = rank.view.translator.mapping(place)
        if mapping is None or not mapping.executable or read_or_none(rank.view.target, place, 1) is None:
            return FAILED
        is_own = rank.view.translator.owner(place).rank == number
        job.breakpoints.add(number, place, None if is_own else job.process_of(number))
        return OK
    if kind not in WATCHES:
        return b""
    place = rank.memory.place(address)
    if not (0 < size <= 32 and 0 <= place < TOP - size):
        return FAILED
    if job.watchpoints.add(Watch(number, address, place, size, WATCHES[kind])):
        return OK
    session.complain("the processor watches four words at a time, of all ranks together")
    return FAILED


def remove(session: ServeSession, arguments: bytes) -> bytes:
    """`z TYPE,ADDRESS,SIZE`."""
    kind, address, _ = _place(arguments)
    rank, job = session.rank(), job_of(session)
    if kind == SOFTWARE:
        job.breakpoints.remove(rank.rank.rank, rank.memory.place(address))
    elif kind in WATCHES:
        job.watchpoints.remove(rank.rank.rank, address, WATCHES[kind])
    else:
        return b""
    return OK


def _place(arguments: bytes) -> tuple[bytes, int, int]:
    kind, address, size = arguments.split(b";")[0].split(b",")
    return kind, hexadecimal(address), hexadecimal(size, 1 << 16)


# ---- going on ----


def v_cont_query(session: ServeSession, arguments: bytes) -> bytes:
    """`vCont?`."""
    return b"vCont;c;C;s;S;t;r"


def resume(session: ServeSession, arguments: bytes) -> Replies:
    """`c`."""
    return _continued(session, 0)


def resume_with_signal(session: ServeSession, arguments: bytes) -> Replies:
    """`C SIGNAL`."""
    return _continued(session, hexadecimal(arguments.split(b";")[0], 256))


def step(session: ServeSession, arguments: bytes) -> Replies:
    """`s`."""
    return _stepped(session, session.current, 0, NO_RANGE, alone=True)


def step_with_signal(session: ServeSession, arguments: bytes) -> Replies:
    """`S SIGNAL`."""
    return _stepped(session, session.current, hexadecimal(arguments.split(b";")[0], 256), NO_RANGE, alone=True)


def v_cont(session: ServeSession, arguments: bytes) -> Replies:
    """`vCont;ACTION:THREAD;...`: one rank steps, or the job goes on as a whole."""
    signal, actions = 0, arguments.split(b";")
    alone = not any(action[:1] in (b"c", b"C") for action in actions)
    for action in actions:
        what, _, thread = action.partition(b":")
        name, rest = what[:1], what[1:]
        number = session.thread_of(thread) if thread else None
        if number is None:
            number = session.current
        if name in (b"C", b"S"):
            signal = hexadecimal(rest, 256)
        if name in (b"s", b"S"):
            return _stepped(session, number, signal, NO_RANGE, alone)
        if name == b"r":
            return _stepped(session, number, 0, range(*map(hexadecimal, rest.split(b","))), alone)
        if name not in (b"c", b"C"):
            return [FAILED]
    return _continued(session, signal)


def _continued(session: ServeSession, signal: int) -> Replies:
    job = job_of(session)
    if session.current is None or not _is_ready(session, session.current, signal):
        return [FAILED]
    return _resumed(session, job.go_on())


def _stepped(session: ServeSession, number: Optional[int], signal: int, within: range, alone: bool) -> Replies:
    job = job_of(session)
    if number is None or number not in session.attached or not _is_ready(session, number, signal):
        return [FAILED]
    return _resumed(session, job.step(number, within, alone))


def _is_ready(session: ServeSession, number: int, signal: int) -> bool:
    """Whether the job can go on; a rank that runs gets a signal then."""
    job = job_of(session)
    if job.has_ended or session.is_running:
        return False
    job.attached = tuple(session.attached)
    if signal:
        job.deliver(number, OF_LINUX.get(signal, 0))
    session.is_running = True
    session.documents.clear()
    return True


def _resumed(session: ServeSession, stop: Optional[RankStop]) -> Replies:
    """Also of what had stopped before: the kernel does not report it again."""
    stop = stop or job_of(session).look()
    return [] if stop is None else _stop_replies(session, stop)


def noticed(session: ServeSession) -> Replies:
    """Threads of the job have stopped, or have ended."""
    if not session.is_running:
        return []
    stop = job_of(session).look()
    return [] if stop is None else _stop_replies(session, stop)


def interrupted(session: ServeSession) -> Replies:
    """Ctrl-C."""
    job = job_of(session)
    if not session.is_running or job.has_ended:
        return []
    try:
        stop = _interrupted_between_switches(job, session.attached)
    except NotStoppableError as error:
        return [stop_and_resume_packets.console(f"{error}; it goes on\n")]
    session.is_running = False
    return _stop_replies(session, stop) if stop is not None else stop_and_resume_packets.standing(session)


def _interrupted_between_switches(job: ControlledJob, attached: Sequence[int]) -> Optional[RankStop]:
    """Have the job stand still while no attached rank is being switched: it would be taken for one that has ended."""
    deadline = time.monotonic() + PATIENCE
    stop = job.interrupt()
    while stop is None and not job.has_ended and time.monotonic() < deadline and job.moment.is_any_switching(attached):
        stop = job.go_on()
        if stop is None:
            time.sleep(BREATH)
            stop = job.interrupt()
    return stop


def _stop_replies(session: ServeSession, stop: RankStop) -> Replies:
    session.is_running = False
    session.documents.clear()
    if stop.kind == EXITED:
        return stop_and_resume_packets.rank_exited(session, stop.rank, stop.number)
    if stop.kind == LEFT:
        line = f"rank {stop.rank} leaves for process {stop.number} of the job, which is not served\n"
        return [stop_and_resume_packets.console(line), *stop_and_resume_packets.rank_exited(session, stop.rank, 0)]
    if session.has_moved(stop.rank, job_of(session).process_of(stop.rank)) and not session.is_lldb:
        job_of(session).defer(stop)
        return [stop_and_resume_packets.stop(session, stop.rank, TRAP, b"library:;")]  # it has other libraries there
    signal = SIGNALS.get(stop.number, TRAP)
    more = b""
    if session.is_lldb:
        more = b"reason:%s;" % REASONS.get(stop.kind, b"trace")
    elif stop.kind == TRAPPED:
        more = b"swbreak:;"
    if stop.watch is not None:
        word = b"awatch" if stop.watch.kind == ACCESS else b"watch"
        more += b"%s:%x;" % (word, stop.watch.seen)
    try:
        return [stop_and_resume_packets.stop(session, stop.rank, signal, more)]
    except RanklensError as error:
        return [stop_and_resume_packets.console(f"{error}\n"), FAILED]
