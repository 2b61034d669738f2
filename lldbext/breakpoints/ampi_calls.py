"""What stock AMPI does with its ranks, where no hook reports it: breakpoints on functions that every AMPI program has.

Takes LLDB's target; hands events in the words of the debug ABI (pieglobalsfind.decoders.ampi.events) to their
follower. Each breakpoint is at the function's first instruction, where its arguments still are in registers.
"""

from __future__ import annotations

import json
from typing import Any, Optional

import lldb

from lldbext.lldb_api.processor import processor_of
from lldbext.lldb_api.run_commands import execute
from lldbext.lldb_api.target import open_process
from lldbext.selection.session import Session
from pieglobalsfind.decoders.ampi import events
from pieglobalsfind.model import RankTable

OF_LOADERS = "_Z17AMPI_FuncPtr_PackP22AMPI_FuncPtr_Transportm"  # of executables that load the program from other files


def places_of(target: Any, event_function: str) -> list[tuple[str, Any]]:
    """Each function and where it begins; nothing where a hook reports events, or where there is no AMPI."""
    if begins_at(target, event_function) is not None:
        return []
    addresses = [(name, begins_at(target, name)) for name in events.FUNCTIONS]
    return addresses if all(address is not None for _, address in addresses) else []


def begins_at(target: Any, function: str) -> Any:
    """LLDB's address of a function's first instruction, None if there is no such function."""
    for match in target.FindSymbols(function, lldb.eSymbolTypeCode):
        return match.symbol.GetStartAddress()
    return None


def break_at(target: Any, function: str, address: Any) -> Any:
    """A breakpoint on a function's first instruction, `address`.

    Where the program is in AMPI's own file, modules of ranks come in its file's place, also while the process stands at
    the breakpoint: it must have a place in each. Others need none, and LLDB no names of ranks' modules for it.
    """
    if begins_at(target, OF_LOADERS) is not None:
        return target.BreakpointCreateBySBAddress(address)
    debugger = target.GetDebugger()
    selected = debugger.GetSelectedTarget()
    debugger.SetSelectedTarget(target)
    execute(debugger, f"breakpoint set --skip-prologue false --fullname {function}")
    debugger.SetSelectedTarget(selected)
    return target.GetBreakpointAtIndex(target.GetNumBreakpoints() - 1)


def extra(function: str) -> Any:
    """What the callback gets: which function it is."""
    stream, data = lldb.SBStream(), lldb.SBStructuredData()
    stream.Print(json.dumps({"function": function}))
    data.SetFromJSON(stream)
    return data


def event_of(session: Session, frame: Any, function: str) -> Optional[events.Event]:
    """The event that a call means, if it means one: its kind, and the rank (-1: all)."""
    processor = processor_of(session.process.GetTarget())
    names = (*processor.argument_names[:2], processor.stack_pointer_name)
    first, second, pointer = (frame.FindRegister(name).GetValueAsUnsigned() for name in names)
    session.forget_moment()

    def table() -> RankTable:
        return session.moment().table

    target = open_process(session.process)
    return session.calls.event(target, table, function, (first, second, pointer), session.modules.ranks)


def know(internal_dict: dict[str, Any], callback_globals: dict[str, Any]) -> None:
    """Tell a callback that runs of those that it gave to breakpoints: LLDB 19 fails without.

    `internal_dict` is what LLDB gives every callback, `callback_globals` what the function sees by which LLDB calls it.
    """
    for name in internal_dict.keys() - callback_globals.keys():
        callback_globals[name] = internal_dict[name]


def return_address(session: Session, frame: Any) -> int:
    """Where the call returns to: the link register, or the word at the stack pointer."""
    processor = processor_of(session.process.GetTarget())
    if not processor.pushes_return_address:
        link = frame.FindRegister(processor.register_names[processor.return_address])
        return int(link.GetValueAsUnsigned()) & processor.code_mask
    pointer = frame.FindRegister(processor.stack_pointer_name).GetValueAsUnsigned()
    return int(session.process.ReadPointerFromMemory(pointer, lldb.SBError()))
