"""Look up a processor's layout in the Remote Serial Protocol."""

from __future__ import annotations

from collections.abc import Mapping

from pieglobalsfind.machine.aarch64 import EM_AARCH64
from pieglobalsfind.machine.aarch64_remote import AARCH64_REMOTE
from pieglobalsfind.machine.processor import Processor
from pieglobalsfind.machine.remote import RemoteLayout
from pieglobalsfind.machine.x86_64 import EM_X86_64
from pieglobalsfind.machine.x86_64_remote import X86_64_REMOTE

_LAYOUTS: Mapping[int, RemoteLayout] = {EM_X86_64: X86_64_REMOTE, EM_AARCH64: AARCH64_REMOTE}


def layout_of(processor: Processor) -> RemoteLayout:
    """The registers of a processor that has a table."""
    return _LAYOUTS[processor.elf_machine]
