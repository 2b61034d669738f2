"""The one family of errors that users see: a sentence that says what happened, and a hint that says what to do.

Takes nothing. Each front end catches `RanklensError` once, at its outermost call, and prints it in its own way.
"""

from __future__ import annotations


class RanklensError(Exception):
    """Something the user can understand and act on.

    `sentence` ends without a full stop; `hint` says what to do, and may be empty.
    """

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.sentence}: {self.hint}" if self.hint else self.sentence


class UsageError(RanklensError):
    """The call itself is wrong (exit status 2)."""


class TargetError(RanklensError):
    """The target can't be read at all: no such process, no permission, no core file (exit status 2)."""


class TargetEndedError(TargetError):
    """The process has ended while it was looked at: nothing more can be said of it (exit status 2)."""


class NotStoppableError(TargetError):
    """A process may be read, but may not be stopped by us, or does not stop (exit status 2)."""


class NotVirtualizedError(RanklensError):
    """The target can be read, but no ranks are found in it (exit status 2)."""


class RegistryError(RanklensError):
    """A registry is there, but it is torn, corrupt or of an unknown version (exit status 2)."""


class MemoryUnreadable(RanklensError):  # noqa: N818 - it reads as what it says
    """An address range of the target can't be read: unmapped, or not in the core file."""

    def __init__(self, address: int, size: int, why: str = "it is not mapped") -> None:
        super().__init__(f"cannot read {size} bytes at {address:#x}, {why}")
        self.address = address
        self.size = size
        self.why = why


class ObjectFileError(RanklensError):
    """An ELF file is missing, is another one than the target uses, or is damaged."""
