"""Records the hook's events in a process, inside GDB: plain GDB, a breakpoint on `rank_debug_event`, nothing of ours.

Takes from the environment the file to write to (`EVENTS`) and where each rank has its `g_rank` (`ADDRESSES`, JSON);
gives a line of JSON for each event, with the value of the rank's variable at that moment, then the process's end.
"""

from __future__ import annotations

import json
import os
from typing import Any

import gdb

ADDRESSES = {int(rank): int(address, 16) for rank, address in json.loads(os.environ["ADDRESSES"]).items()}


def write(**fields: object) -> None:
    with open(os.environ["EVENTS"], "a") as file:
        file.write(json.dumps(fields) + "\n")


class Events(gdb.Breakpoint):
    """Never stops."""

    def stop(self) -> bool:
        frame = gdb.newest_frame()
        kind, rank = (int(frame.read_register(name)) & 0xFFFFFFFF for name in ("rdi", "rsi"))
        write(kind=kind, rank=rank, value=value_of(rank))
        return False


def value_of(rank: int) -> Any:
    """The rank's own variable; None if its memory is not here."""
    try:
        data = gdb.selected_inferior().read_memory(ADDRESSES[rank], 4)
    except (gdb.MemoryError, KeyError):
        return None
    return int.from_bytes(bytes(data), "little", signed=True)


Events("rank_debug_event")
write(ready=os.getpid())
gdb.execute("continue")
write(ended=True)
