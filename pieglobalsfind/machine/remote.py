"""The form of a processor's registers in GDB's Remote Serial Protocol: names, sizes and their order in packets.

Takes nothing. Source: the GDB manual, "Target Descriptions" and "Standard Target Features".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Register:
    """One register; `size` in bytes, `dwarf` its DWARF number or -1. `always` is the value that every rank has."""

    name: str
    size: int
    type: str
    dwarf: int = -1
    group: str = ""
    always: int = -1


@dataclass(frozen=True)
class Feature:
    """Registers that a description names together, and the types that it defines for them, as XML."""

    name: str
    registers: tuple[Register, ...]
    types: str = ""


@dataclass(frozen=True)
class RemoteLayout:
    """One processor's registers, numbered in the order of `features`.

    `architecture` and `triple` are GDB's and LLDB's names of it. `integers` are what a suspended rank may have,
    `of_running` what it may have once it runs. `generic` gives LLDB's word for a register's role. `thread_pointer` is
    the DWARF number of the one by which debuggers find thread-local variables themselves, -1 if they ask for each.
    """

    architecture: str
    triple: str
    features: tuple[Feature, ...]
    integers: tuple[Register, ...]
    of_running: tuple[Register, ...]
    generic: Mapping[str, str] = field(default_factory=dict)
    thread_pointer: int = -1

    @cached_property
    def registers(self) -> tuple[Register, ...]:
        """All of them, by number."""
        return tuple(register for feature in self.features for register in feature.registers)
