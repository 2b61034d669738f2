"""Takes breakpoints out of code before the runtime copies or sends it; then LLDB finds their locations in the copies.

Takes LLDB's breakpoints and the runtime's events (`rank_debug_event`). Every rank's copy is a module to LLDB, so its
breakpoints have a location in each; what is done here is about time. Before the runtime copies an object no breakpoint
is left in it (a copied int3 would trap where LLDB knows of none), before a rank is packed none is left in its copies.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import lldb

from lldbext.breakpoints import ampi_calls
from lldbext.lldb_api.own_breakpoints import NAME, ours_of, users_of
from lldbext.lldb_api.processor import processor_of
from lldbext.lldb_api.run_commands import DebuggerError, execute, warnings
from lldbext.lldb_api.target import CORE_PLUGINS
from lldbext.selection.session import SESSIONS, Session
from lldbext.threads.thread_ids import NUMBERS, tid_of
from pieglobalsfind.decoders.ampi import events
from pieglobalsfind.decoders.registry.layout import AFTER_COPIES, AFTER_UNPACK, BEFORE_COPIES, BEFORE_PACK, CREATED
from pieglobalsfind.model import EXITED, MIGRATED_OUT
from pieglobalsfind.ranks.variable_address import runs_original
from pieglobalsfind.session import breakpoints_in_shared_memory
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import is_one_file, runtime_path

EVENT_FUNCTION = "rank_debug_event"
MASK = 0xFFFFFFFF
TASKS = (
    "these ranks are processes that share memory: a breakpoint would kill those that LLDB is not attached to. "
    "`rank break` sets none that would; `b` is not checked"
)


def watch_events(debugger: Any) -> None:
    """Break on the runtime's events, in the target that is there and in those to come."""
    for target in (debugger.GetDummyTarget(), debugger.GetSelectedTarget()):
        if target.IsValid() and target.GetProcess().GetPluginName() not in CORE_PLUGINS:
            _watch_events_of(target)


def _watch_events_of(target: Any) -> None:
    hidden = lldb.SBBreakpointName(target, NAME)
    for forbid in (hidden.SetAllowList, hidden.SetAllowDelete, hidden.SetAllowDisable):
        forbid(False)
    mark(target.BreakpointCreateByName(EVENT_FUNCTION))
    for function, address in ampi_calls.places_of(target, EVENT_FUNCTION):
        mark_call(ampi_calls.break_at(target, function, address), function)


def mark_call(ours: Any, function: str) -> None:
    """Make a breakpoint on a function of stock AMPI ours."""
    ours.AddName(NAME)
    ours.SetScriptCallbackFunction(f"{__name__}.on_call", ampi_calls.extra(function))


def renew(session: Session) -> None:
    """Set our breakpoints anew for a process that has begun: the events' function may lie elsewhere, or be missing."""
    if session.process.GetPluginName() in CORE_PLUGINS or not any(True for _ in ours_of(session.target)):
        return
    _delete_ours(session.target)
    _watch_events_of(session.target)


def _delete_ours(target: Any) -> None:
    for own in list(ours_of(target)):
        target.BreakpointDelete(own.GetID())


def mark(ours: Any) -> None:
    """Make a breakpoint ours."""
    ours.AddName(NAME)
    ours.SetScriptCallbackFunction(f"{__name__}.on_event")


def settle(session: Session, moment: ProcessView) -> None:
    """Break at the events' address instead of their name: for that LLDB reads the names of every rank's module."""
    address = moment.table.event_function
    if session.settled or not address or session.process.GetPluginName() in CORE_PLUGINS:
        return
    if is_one_file(moment.table, runtime_path(moment.table, moment.translator)):
        return  # a module that goes, as the original's does, would take the breakpoint along
    session.settled = True
    _delete_ours(session.target)
    if breakpoints_in_shared_memory.danger(moment, address) is None:
        mark(session.target.BreakpointCreateByAddress(address))
    else:
        session.tell_once(f"ranklens: {TASKS}")


def spare_tasks(session: Session, moment: ProcessView) -> list[str]:
    """Disable the locations that would kill a process that LLDB is not attached to, and say of which breakpoints.

    LLDB tells extensions nothing of a breakpoint that is set by `b`: those are looked at when the process stops.
    """
    if not any(map(breakpoints_in_shared_memory.is_task, moment.table.ranks)):
        return []
    lines = []
    for user in users_of(session.process.GetTarget()):
        places = [user.GetLocationAtIndex(index) for index in range(user.GetNumLocations())]
        reasons = [
            (place, breakpoints_in_shared_memory.danger(moment, place.GetLoadAddress()))
            for place in places
            if place.IsEnabled()
        ]
        for place, why in reasons:
            if why is not None:
                place.SetEnabled(False)
        reason = next((why for _, why in reasons if why is not None), None)
        if reason is not None:
            lines.append(f"[Locations of breakpoint {user.GetID()} are disabled, {reason}]")
    return lines


def on_event(frame: Any, location: Any, extra: Any, internal_dict: Any = None) -> bool:
    """LLDB calls this when the runtime says what it does; False: the process goes on."""
    process = frame.GetThread().GetProcess()
    names = processor_of(process.GetTarget()).argument_names[:2]
    kind, rank = (frame.FindRegister(name).GetValueAsUnsigned() & MASK for name in names)
    session = SESSIONS.of(process)
    with warnings("breakpoints in ranks may be missing"):
        return follow_event(session, kind, rank - (1 << 32) if rank >> 31 else rank)
    return False


def follow_event(session: Session, kind: int, rank: int) -> bool:
    """Whether the process is to stop: the user steps in a rank that leaves."""
    handle(session, kind, rank)
    if kind == BEFORE_PACK and session.thread_breakpoints.are_for(rank):
        session.stepped_away.add(rank)
        print(f"[Rank {rank} leaves this process, the step ends]")
        return True
    return False


def on_call(frame: Any, location: Any, extra: Any, internal_dict: Any) -> bool:
    """LLDB calls this when stock AMPI creates, moves or ends a rank; False: the process goes on."""
    session = SESSIONS.of(frame.GetThread().GetProcess())
    function = str(extra.GetValueForKey("function").GetStringValue(64))
    if not any(True for _ in users_of(session.target)):
        return False
    with warnings("breakpoints in ranks may be missing"):
        if function == events.ARRIVED:
            watch_return(session, frame)
            ampi_calls.know(internal_dict, sys._getframe(1).f_globals)
        event = ampi_calls.event_of(session, frame, function)
        return event is not None and follow_event(session, *event)
    return False


def watch_return(session: Session, frame: Any) -> None:
    """Break where the call returns to, once: then the rank is whole."""
    if not session.watches_return:
        session.watches_return = True
        address = ampi_calls.return_address(session, frame)
        mark_call(session.target.BreakpointCreateByAddress(address), events.RETURNED)


def end_steps(session: Session) -> None:
    """Let LLDB forget the steps of ranks that have left: where one comes back to, it has long been elsewhere."""
    for rank in session.stepped_away:
        numbers = " ".join(str(tid_of(rank, number)) for number in range(NUMBERS))
        with suppress(DebuggerError):  # there is no such thread any more, or no plan
            execute(session.target.GetDebugger(), f"thread plan prune {numbers}")
    session.stepped_away.clear()


def handle(session: Session, kind: int, rank: int) -> None:
    """What an event means for breakpoints."""
    target = session.process.GetTarget()
    session.forget_moment()
    session.meet_kernel_threads()
    session.forget_moment()
    if kind in (AFTER_COPIES, CREATED) and session.left_out:
        return_to_shared(session)
    if kind == BEFORE_COPIES:
        leave_originals(session)
    elif kind == BEFORE_PACK:
        session.leaving.add(rank)
        session.modules.drop(rank)
    elif kind in (AFTER_COPIES, AFTER_UNPACK) or (kind == CREATED and rank not in session.modules.ranks):
        session.leaving.discard(rank)
        if any(True for _ in users_of(target)):
            place_all(session)
    session.forget_moment()


def leave_originals(session: Session) -> None:
    """Take every breakpoint out of the objects that are about to be copied."""
    moment = session.moment()
    for location in locations(session.process.GetTarget()):
        address = location.GetLoadAddress()
        if location.IsEnabled() and moment.translator.owner(address).kind == "original":
            location.SetEnabled(False)
            session.left_out.add(address)


def return_to_shared(session: Session) -> None:
    """Once there are ranks: put back what was taken out of objects of which they have no copies.

    That of an original which ranks run although they have copies comes back once all copies are made.
    """
    moment = session.moment()
    table = moment.table
    if not table.ranks:
        return
    later: set[int] = set()
    for location in locations(session.process.GetTarget()):
        address = location.GetLoadAddress()
        owner = moment.translator.owner(address)
        if address not in session.left_out or owner.object is None:
            continue
        is_used = runs_original(table.ranks[0], table.objects[owner.object])
        if owner.kind == "shared" or (is_used and len(table.ranks) >= table.rank_count):
            location.SetEnabled(True)
        elif is_used:
            later.add(address)
    session.left_out.clear()
    session.left_out.update(later)


def place_all(session: Session) -> None:
    """Let LLDB know every rank's copies; its breakpoints find their locations in them."""
    moment = session.moment()
    for rank in moment.table.ranks:
        if rank.state not in (EXITED, MIGRATED_OUT):
            session.modules.place(moment, rank.rank)


def locations(target: Any) -> Iterator[Any]:
    """Of the user's breakpoints."""
    for user in users_of(target):
        yield from (user.GetLocationAtIndex(index) for index in range(user.GetNumLocations()))
