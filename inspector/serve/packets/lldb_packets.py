"""What LLDB asks beyond GDB's protocol: about its host, the one process that it has, and the platform's processes.

Handlers of packets: each takes a session and what follows the packet's name; gives the reply. Source:
lldb.llvm.org/resources/lldbgdbremote.html.
"""

from __future__ import annotations

import json

from .. import framing
from ..framing import as_hex, hexadecimal
from ..ranks import thread_control_block
from ..ranks.rank_process import RankProcess
from ..session import FAILED, FIRST_PID, OK, TRAP, ServeSession
from . import register_encoding, stop_and_resume_packets


def host(session: ServeSession, arguments: bytes) -> bytes:
    """`qHostInfo`: also how many bits of an address are not the signature of a return address."""
    session.is_lldb = True
    bits = session.source.processor.code_mask.bit_length()
    addressing = b"addressing_bits:%d;" % bits if bits < 64 else b""
    return b"triple:%s;ptrsize:8;endian:little;%s" % (as_hex(session.source.registers.triple), addressing)


def process(session: ServeSession, arguments: bytes) -> bytes:
    """`qProcessInfo`."""
    session.begin()
    if session.current is None:
        return FAILED
    triple = as_hex(session.source.registers.triple)
    return b"pid:%x;triple:%s;ostype:linux;endian:little;ptrsize:8;" % (FIRST_PID + session.current, triple)


def thread_suffix(session: ServeSession, arguments: bytes) -> bytes:
    """`QThreadSuffixSupported`."""
    session.is_lldb = True
    return OK


def threads(session: ServeSession, arguments: bytes) -> bytes:
    """`jThreadsInfo`."""
    number = session.current
    if number is None:
        return FAILED
    rank = session.rank(number)
    values = {
        str(number): digits.decode()
        for number, digits in register_encoding.known_values(rank.register_layout, rank.known_registers)
    }
    name = f"rank {number}: {rank.state}"
    rows = [{"tid": FIRST_PID + number, "name": name, "reason": "signal", "signal": TRAP, "registers": values}]
    return framing.escaped(json.dumps(rows).encode())


def thread_stop(session: ServeSession, arguments: bytes) -> bytes:
    """`qThreadStopInfo`."""
    number = session.thread_of(arguments)
    return FAILED if number is None else stop_and_resume_packets.stop(session, number, TRAP)


def library_list_pointer(session: ServeSession, arguments: bytes) -> bytes:
    """`qShlibInfoAddr`: where the pointer to the loader's list stands, without which no library is read."""
    return b"%x" % thread_control_block.POINTER_TO_LIST if session.rank().files.loader_list else FAILED


def memory_region(session: ServeSession, arguments: bytes) -> bytes:
    """`qMemoryRegionInfo:ADDRESS`."""
    address = hexadecimal(arguments)
    rank = session.rank()
    mapping = rank.view.translator.mapping(address)
    if mapping is not None:
        flags = "".join(
            flag for flag, has in zip("rwx", (mapping.readable, mapping.writable, mapping.executable)) if has
        )
        name = b"name:%s;" % as_hex(mapping.path) if mapping.path else b""
        return b"start:%x;size:%x;permissions:%s;%s" % (
            mapping.start,
            mapping.end - mapping.start,
            flags.encode(),
            name,
        )
    later = (each.start for each in rank.view.target.maps() if each.start > address)
    end = next(later, 1 << 64)
    return b"start:%x;size:%x;" % (address, end - address)


# ---- the platform: several ranks, each a connection of its own ----


def first_process(session: ServeSession, arguments: bytes) -> bytes:
    """`qfProcessInfo`: every rank."""
    wanted = _criteria(arguments)
    with session.looking() as moment:
        session.processes = [
            _process(number, moment.rank(number)) for number in moment.numbers if wanted in (None, FIRST_PID + number)
        ]
    return next_process(session, b"")


def _criteria(arguments: bytes) -> object:
    """The pid that is asked for, None for all."""
    for part in arguments.lstrip(b":").split(b";"):
        name, _, value = part.partition(b":")
        if name == b"pid" and value.isdigit():
            return int(value)
    return None


def next_process(session: ServeSession, arguments: bytes) -> bytes:
    """`qsProcessInfo`."""
    return session.processes.pop(0) if session.processes else FAILED


def process_of_pid(session: ServeSession, arguments: bytes) -> bytes:
    """`qProcessInfoPID:PID`."""
    if not arguments.isdigit() or len(arguments) > 10:
        return FAILED
    number = session.number_of(int(arguments))
    with session.looking() as moment:
        return _process(number, moment.rank(number))


def _process(number: int, rank: RankProcess) -> bytes:
    name = rank.program.path
    about = as_hex(f"rank {number}: {rank.state}")
    pid = FIRST_PID + number
    words = b"-".join((as_hex(name), about))
    return b"pid:%d;ppid:1;name:%s;args:%s;triple:%s;" % (
        pid,
        as_hex(name),
        words,
        as_hex(rank.register_layout.triple),
    )


def server_for_process(session: ServeSession, arguments: bytes) -> bytes:
    """`qLaunchGDBServer`: another connection to this server."""
    return b"pid:1;port:%d;" % session.port if session.port else FAILED
