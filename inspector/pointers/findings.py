"""What the pointer audit says: words that were rewritten or forgotten, each with its verdict; objects that failed.

Takes what evidence and a rank's memory say of a word; formats nothing and reads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional, Union

from pieglobalsfind.model import Absent

from .ground import AMBIGUOUS, MANGLED, NO_POINTER, PROVEN, TYPED, UNTYPED, Ground

FALSE_POSITIVE = "false positive"
STALE = "stale"
ANOTHER_RANKS = "another rank's"
VERDICTS = (PROVEN, TYPED, AMBIGUOUS, FALSE_POSITIVE, STALE, ANOTHER_RANKS, MANGLED, UNTYPED)
ALARMING = (FALSE_POSITIVE, STALE, ANOTHER_RANKS, MANGLED)
HEAP, STACK, LIBC_HEAP = "heap", "stack", "libc's heap"


@dataclass(frozen=True)
class PointerFinding:
    """One word of one rank's image that was rewritten, or that points into an original or another rank's image.

    `object` is the path of the copied object, "heap", "stack" or "libc's heap", `offset` from its base (of heap and
    stack: from the start of the rank's own; of libc's heap: from the block's); `old` is the original's word, `new` the
    rank's, the same where there is no original; `right` is what it should be (Absent: unknown). `demangled` is
    what a mangled word means.
    """

    rank: int
    object: str
    offset: int
    address: int
    verdict: str
    ground: Ground
    old: int
    new: int
    right: Union[int, Absent]
    rewritten: bool
    past_end: bool
    demangled: Optional[int] = None

    @property
    def healthy(self) -> bool:
        """A pointer by good evidence, and rewritten."""
        return self.rewritten and self.verdict in (PROVEN, TYPED)


@dataclass(frozen=True)
class Alarm:
    """The privatization of an object failed: words that its code reaches everything through name the original."""

    object: str
    ranks: tuple[int, ...]
    of_ranks: int
    words: int
    of_words: int

    @property
    def sentence(self) -> str:
        """Return the alarm as a sentence."""
        return (
            f"privatization of {self.object} failed in {len(self.ranks)} of {self.of_ranks} ranks: "
            f"{self.words} of {self.of_words} relocated words still name the original"
        )


@dataclass(frozen=True)
class Audit:
    """Findings in order of rank, and how many words got which verdict, by object and verdict.

    `changed` counts words that the program has changed since the copy was made: there is nothing to say about them.
    `unread` says of ranks what of theirs was not read, and why.
    """

    findings: tuple[PointerFinding, ...]
    counts: dict[tuple[str, str], int]
    alarms: tuple[Alarm, ...]
    changed: int
    absent: tuple[Absent, ...] = field(default=())
    unread: tuple[tuple[int, str], ...] = field(default=())

    @property
    def unread_by_reason(self) -> dict[str, list[int]]:
        """The ranks, ascending, of which something was not read, by the reason."""
        ranks_by_reason: dict[str, list[int]] = {}
        for rank, reason in sorted(self.unread):
            ranks_by_reason.setdefault(reason, []).append(rank)
        return ranks_by_reason


def verdict_of(ground: Ground, rewritten: bool) -> Optional[str]:
    """What to say of a word that named an original place; None when it was rightly left alone."""
    bare = ground.kind in (NO_POINTER, MANGLED)  # what glibc mangles names no place as it is
    if rewritten:
        return FALSE_POSITIVE if bare else ground.kind
    if ground.is_pointer:
        return STALE
    return None if bare else ground.kind


def right_value(ground: Ground, old: int, moved: Optional[int]) -> Union[int, Absent]:
    """What the copy's word should have been."""
    if ground.is_pointer:
        return moved if moved is not None else Absent("the rank has no copy of what it points to")
    if ground.kind in (NO_POINTER, MANGLED):
        return old
    return Absent("nothing says whether it is a pointer")
