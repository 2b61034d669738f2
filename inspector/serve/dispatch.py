"""Which handler answers which packet.

Takes a session and a packet's content; gives the replies. Whatever a client sends, the answer is a reply of the
protocol: an error for what makes no sense or can't be had, nothing for what is not known.
"""

from __future__ import annotations

from collections.abc import Callable

from pieglobalsfind.errors import RanklensError

from .packets import (
    control_packets,
    file_packets,
    lldb_packets,
    query_packets,
    register_and_memory_packets,
    stop_and_resume_packets,
)
from .packets.stop_and_resume_packets import Replies
from .session import FAILED, UNSUPPORTED, ServeSession

Handler = Callable[[ServeSession, bytes], bytes]

HANDLERS: dict[bytes, Handler] = {
    b"!": query_packets.extended,
    b"?": stop_and_resume_packets.why_stopped,
    b"D": query_packets.detach,
    b"H": query_packets.select,
    b"T": query_packets.is_alive,
    b"g": register_and_memory_packets.all_registers,
    b"p": register_and_memory_packets.one_register,
    b"G": register_and_memory_packets.write_registers,
    b"P": register_and_memory_packets.write_registers,
    b"m": register_and_memory_packets.read,
    b"x": register_and_memory_packets.read_binary,
    b"M": register_and_memory_packets.write,
    b"X": register_and_memory_packets.write_binary,
    b"Z": stop_and_resume_packets.breakpoint_packet,
    b"z": stop_and_resume_packets.remove_breakpoint,
    b"vAttach;": query_packets.attach,
    b"vCont?": stop_and_resume_packets.v_cont_query,
    b"vKill": stop_and_resume_packets.refuse_kill,
    b"qSupported": query_packets.supported,
    b"QStartNoAckMode": query_packets.no_acknowledgement,
    b"qC": query_packets.current,
    b"qAttached": query_packets.is_attached,
    b"qfThreadInfo": query_packets.first_threads,
    b"qsThreadInfo": query_packets.more_threads,
    b"qThreadExtraInfo": query_packets.thread_state,
    b"qGetTLSAddr:": query_packets.thread_local_address,
    b"qXfer:": query_packets.transfer,
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
    b"c": stop_and_resume_packets.resume,
    b"C": stop_and_resume_packets.resume,
    b"s": stop_and_resume_packets.step,
    b"S": stop_and_resume_packets.step,
    b"vCont;": stop_and_resume_packets.v_cont,
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
    return stop_and_resume_packets.interrupted(session)


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
