"""Address of a symbol in a given rank (`$_rankaddr`), whichever rank's symbols GDB has loaded.

Takes a name as the program has it; an instance that lies in another inferior is none of this one's addresses.
"""

from __future__ import annotations

import gdb

from gdbext.gdb_api.run_commands import gdb_errors
from gdbext.gdb_api.target import path_of
from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import MIGRATED_OUT


def address_of(debugger: GdbDebugger, name: str, rank: int) -> int:
    """Raises `DebuggerError` if there is no such symbol."""
    moment = debugger.moment()
    if not is_here(debugger, rank):
        process = debugger.job().process(rank)
        raise UsageError(f"rank {rank} is in {process.name}, whose memory is another", f"rank print {rank} -- {name}")
    with gdb_errors():
        address = address_in_focus(debugger, name)
    owner = moment.translator.owner(address)
    if owner.object is None:
        raise UsageError(f"{name} is not private to ranks", f"print &{name} shows its one address")
    return moment.translator.rank_address(rank, owner.object, owner.offset)


def is_here(debugger: GdbDebugger, rank: int) -> bool:
    """Whether the selected inferior has a rank; others are read only if it has not."""
    moment = debugger.moment()
    here = any(present.rank == rank and present.state != MIGRATED_OUT for present in moment.table.ranks)
    return here or debugger.job().of(rank) is moment


def address_in_focus(debugger: GdbDebugger, name: str) -> int:
    """Of a symbol of the copied objects before one of the same name elsewhere."""
    paths = debugger.state().focus.paths
    for objfile in gdb.objfiles():
        if path_of(objfile) in paths:
            symbol = objfile.lookup_global_symbol(name) or objfile.lookup_static_symbol(name)
            if symbol is not None and not symbol.needs_frame and symbol.value().address is not None:
                return int(symbol.value().address or 0)
    return debugger.address(f"&{name}")
