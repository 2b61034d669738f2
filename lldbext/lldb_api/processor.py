"""The processor of an LLDB target, and its registers in the form that LLDB's thread plug-ins need."""

from __future__ import annotations

from typing import Any

from pieglobalsfind.errors import UsageError
from pieglobalsfind.machine.lookup import NAMES, PROCESSORS
from pieglobalsfind.machine.processor import Processor


def processor_of(target: Any) -> Processor:
    """The table of an `SBTarget`'s processor; raises `UsageError` for one without."""
    triple = target.GetTriple() or ""
    for processor in PROCESSORS.values():
        if triple.partition("-")[0] == processor.kernel_name:
            return processor
    raise UsageError(f"LLDB debugs a program for {triple}", f"ranks of {NAMES} programs can be shown")


def register_info(processor: Processor) -> dict[str, Any]:
    """What an `OperatingSystemPlugIn` says of registers: 64 bits each, in the order of their DWARF numbers."""
    roles = {processor.pc: "pc", processor.stack_pointer: "sp", processor.frame_pointer: "fp"}
    return {
        "sets": ["General Purpose Registers"],
        "registers": [
            {
                "name": name,
                "bitsize": 64,
                "offset": 8 * number,
                "encoding": "uint",
                "format": "hex",
                "set": 0,
                "gcc": number,
                "dwarf": number,
                **({"generic": roles[number]} if number in roles else {}),
            }
            for number, name in enumerate(processor.register_names)
        ],
    }
