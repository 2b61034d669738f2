"""Which processor a target's program is for, by the ELF headers in its memory.

Takes a target without a rank table. An emulator's process holds files for two processors: the emulator's own are this
machine's, the program's are the others.
"""

from __future__ import annotations

import os
from contextlib import suppress

from pieglobalsfind.elf.file import HEADER_SIZE, parse_header
from pieglobalsfind.errors import MemoryUnreadable, ObjectFileError, TargetError
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.target import Target, file_starts


def processor_of_target(target: Target) -> Processor:
    """The table of the target's processor; raises `TargetError` if no mapped file tells it."""
    by_machine: dict[int, Processor] = {}
    for mapping in file_starts(target.maps()):
        with suppress(MemoryUnreadable, ObjectFileError):
            machine = parse_header(target.read(mapping.start, HEADER_SIZE), mapping.path).machine
            if machine in PROCESSORS:
                by_machine[machine] = PROCESSORS[machine]
    emulated = [processor for processor in by_machine.values() if processor.kernel_name != os.uname().machine]
    for processor in (*emulated, *by_machine.values()):
        return processor
    raise TargetError(f"no file that {target.description} has mapped names its processor")
