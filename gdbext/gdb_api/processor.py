"""The processor of the selected inferior, by GDB's own architecture."""

from __future__ import annotations

import gdb

from pieglobalsfind.errors import UsageError
from pieglobalsfind.machine.lookup import NAMES, PROCESSORS
from pieglobalsfind.machine.processor import Processor


def processor() -> Processor:
    """The table of the selected inferior's processor; raises `UsageError` for one without."""
    name = gdb.selected_inferior().architecture().name()
    for machine in PROCESSORS.values():
        if name.startswith(machine.gdb_name):
            return machine
    raise UsageError(f"GDB debugs a program for {name}", f"ranks of {NAMES} programs can be shown")
