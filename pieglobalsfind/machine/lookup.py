"""Look up the processor's table for an ELF machine."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import Optional

from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.machine.aarch64 import AARCH64
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.x86_64 import X86_64

PROCESSORS: Mapping[int, Processor] = {processor.elf_machine: processor for processor in (X86_64, AARCH64)}
NAMES = " and ".join(processor.name for processor in PROCESSORS.values())
USUAL = X86_64  # of a table of ranks that is made without naming one
# Names of other processors, for messages (gABI, e_machine)
_OTHERS = {3: "i386", 8: "MIPS", 20: "PowerPC", 21: "PowerPC64", 22: "s390x", 40: "ARM", 243: "RISC-V"}
_OTHERS.update({258: "LoongArch"})


def processor_of(elf_machine: int) -> Processor:
    """The table of an ELF machine; raises `ObjectFileError` for a processor without one."""
    processor = PROCESSORS.get(elf_machine)
    if processor is None:
        raise ObjectFileError(f"a program for {machine_name(elf_machine)} can't be read", f"{NAMES} can")
    return processor


# A table is sent to other processes by its number: it holds functions.
copyreg.pickle(Processor, lambda processor: (processor_of, (processor.elf_machine,)))


def of_kernel(name: str) -> Optional[Processor]:
    """The table for uname's word of a machine, None without one."""
    return next((processor for processor in PROCESSORS.values() if processor.kernel_name == name), None)


def machine_name(elf_machine: int) -> str:
    """What a message calls an ELF machine."""
    processor = PROCESSORS.get(elf_machine)
    return processor.name if processor is not None else _OTHERS.get(elf_machine, f"ELF machine {elf_machine}")
