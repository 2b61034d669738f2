"""Look up the control table of a processor, if its threads can be controlled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Optional

from pieglobalsfind.machine.control import Control
from pieglobalsfind.machine.lookup import of_kernel
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.x86_64 import EM_X86_64
from pieglobalsfind.machine.x86_64_control import X86_64_CONTROL

_CONTROLS: Mapping[int, Control] = {EM_X86_64: X86_64_CONTROL}


def control_of(processor: Processor) -> Optional[Control]:
    """How a processor's threads are controlled; None where they can't be."""
    return _CONTROLS.get(processor.elf_machine)


@cache
def control_here() -> Optional[Control]:
    """The same for this machine."""
    processor = of_kernel(os.uname().machine)
    return control_of(processor) if processor is not None else None


def needed_control() -> Control:
    """The same where threads are under control, so that there is one."""
    control = control_here()
    assert control is not None, "threads of this machine's processor can't be controlled"
    return control
