"""Which handler answers which packet.

Takes a session and a packet's content; gives the replies. Whatever a client sends, the answer is a reply of the
protocol: an error for what makes no sense or can't be had, nothing for what is not known.
"""

from __future__ import annotations

from collections.abc import Callable

from pieglobalsfind.errors import RanklensError

from .packets import control_packets, file_packets, lldb_packets, memory_packets, queries, stops
from .packets.stops import Replies
from .session import FAILED, UNSUPPORTED, ServeSession

Handler = Callable[[ServeSession, bytes], bytes]

HANDLERS: dict[bytes, Handler] = {
    b"!": queries.extended,
    b"?": stops.why_stopped,
    b"D": queries.detach,
    b"H": queries.select,
    b"T": queries.is_alive,
    b"g": memory_packets.all_registers,
    b"p": memory_packets.one_register,
    b"G": memory_packets.write_registers,
    b"P": memory_packets.write_registers,
    b"m": memory_packets.read,
    b"x": memory_packets.read_binary,
    b"M": memory_packets.write,
    b"X": memory_packets.write_binary,
    b"Z": stops.breakpoint_packet,
    b"z": stops.remove_breakpoint,
    b"vAttach;": queries.attach,
    b"vCont?": stops.v_cont_query,
    b"vKill": stops.refuse_kill,
    b"qSupported": queries.supported,
    b"QStartNoAckMode": queries.no_acknowledgement,
    b"qC": queries.current,
    b"qAttached": queries.is_attached,
    b"qfThreadInfo": queries.first_threads,
    b"qsThreadInfo": queries.more_threads,
    b"qThreadExtraInfo": queries.thread_state,
    b"qGetTLSAddr:": queries.thread_local_address,
    b"qXfer:": queries.transfer,
    b"vFile:setfs:": file_packets.set_file_system,
    b"vFile:open:": file_packets.open_file,
    b"vFile:pread:": file_packets.read,
    b"vFile:fstat:": file_packets.status,
    b"vFile:close:": file_packets.close_file,
    b"qHostInfo": lldb_packets.host,
    b"qProcessInfo": lldb_packets.process,
    b"qProcessInfoPID:": lldb_packets.process_of_pid,
    b"qfProcessInfo": lldb_packets.first_process,
    b"qsProcessInfo": lldb_packets.next_process,
    b"qLaunchGDBServer": lldb_packets.server_for_process,
    b"QThreadSuffixSupported": lldb_packets.thread_suffix,
    b"jThreadsInfo": lldb_packets.threads,
    b"qThreadStopInfo": lldb_packets.thread_stop,
    b"qShlibInfoAddr": lldb_packets.library_list_pointer,
    b"qMemoryRegionInfo:": lldb_packets.memory_region,
}
RESUMING: dict[bytes, Callable[[ServeSession, bytes], Replies]] = {
    b"c": stops.resume,
    b"C": stops.resume,
    b"s": stops.step,
    b"S": stops.step,
    b"vCont;": stops.v_cont,
}
# What these mean instead where the debugger controls ranks.
CONTROLLING: dict[bytes, Handler] = {
    b"Z": control_packets.insert,
    b"z": control_packets.remove,
    b"vCont?": control_packets.v_cont_query,
}
CONTROLLED_RESUMING: dict[bytes, Callable[[ServeSession, bytes], Replies]] = {
    b"c": control_packets.resume,
    b"C": control_packets.resume_with_signal,
    b"s": control_packets.step,
    b"S": control_packets.step_with_signal,
    b"vCont;": control_packets.v_cont,
}
# Names that are the beginning of longer ones, which mean something else.
WHOLE = frozenset({b"qC", b"qProcessInfo", b"!", b"?"})
LETTERS = frozenset(name for name in (*HANDLERS, *RESUMING) if len(name) == 1 and name not in WHOLE)


def replies_to(session: ServeSession, content: bytes) -> Replies:
    """What to send for a packet: nothing while the job goes on."""
    if content == b"k":
        session.close()
        return [b"X09"] if session.is_lldb else []
    try:
        name = _name(content)
        arguments, controls = content[len(name) :], session.allowed.control
        if name in RESUMING:
            return (CONTROLLED_RESUMING if controls else RESUMING)[name](session, arguments)
        if controls and name in CONTROLLING:
            return [CONTROLLING[name](session, arguments)]
        if name in HANDLERS:
            return [HANDLERS[name](session, arguments)]
    except RanklensError as error:
        if content.startswith((b"vAttach", b"?", b"qXfer:osdata", b"c", b"vCont")):
            session.complain(str(error))
        return [FAILED]
    except (ValueError, KeyError):  # what makes no sense
        return [FAILED]
    return [UNSUPPORTED]


def interrupted(session: ServeSession) -> Replies:
    """What to send for Ctrl-C."""
    if session.allowed.control:
        return control_packets.interrupted(session)
    return stops.interrupted(session)


def _name(content: bytes) -> bytes:
    """The packet's name: of those that the content begins with the longest."""
    if content[:1] in LETTERS:
        return content[:1]
    candidates = [
        name
        for name in (*HANDLERS, *RESUMING)
        if content.startswith(name) and len(name) > 1 and (name not in WHOLE or content == name)
    ]
    return max(candidates, key=len, default=content if content in WHOLE else b"")
