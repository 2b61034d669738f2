"""Hold what evidence says of one word of memory: whether it is a pointer, and by which source."""

from __future__ import annotations

from dataclasses import dataclass

# What evidence says of a word
PROVEN = "proven"  # a relocation makes it an address, or the loader does in the dynamic section
TYPED = "typed"  # DWARF types it as a pointer
AMBIGUOUS = "ambiguous"  # a union with a pointer among others, or an integer type made for addresses
MANGLED = "glibc-mangled"  # a pointer as setjmp keeps it: rotated, and mixed with a guard of the process
NO_POINTER = "no pointer"  # DWARF types it as something else
UNTYPED = "untyped"  # nothing describes it


@dataclass(frozen=True)
class Ground:
    """What is known of one word: `kind` is one of the constants above, `source` the evidence in words.

    `symbol` is the variable with the path to its member ("packets[1].where"), "" if unknown; `type` is the member's.
    """

    kind: str
    source: str
    symbol: str = ""
    type: str = ""

    @property
    def is_pointer(self) -> bool:
        """Return whether the evidence is that of a pointer."""
        return self.kind in (PROVEN, TYPED)
