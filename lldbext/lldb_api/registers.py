"""The processor of what LLDB debugs, by its triple, and what its plug-in interface wants to know of registers."""

from __future__ import annotations

from typing import Any

from pieglobalsfind.errors import UsageError
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.machine.processor import Processor


def processor_of(target: Any) -> Processor:
    """The table of an `SBTarget`'s processor; raises `UsageError` for one without."""
    triple = target.GetTriple() or ""
    for processor in PROCESSORS.values():
        if triple.partition("-")[0] == processor.kernel_name:
            return processor
    raise UsageError(f"LLDB debugs a program for {triple}", "ranks of x86-64 and AArch64 programs can be shown")


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
