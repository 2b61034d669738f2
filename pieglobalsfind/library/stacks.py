"""Ranks' stacks as values of Python programs, innermost frame first.

Takes a process between two stops; gives a `Stack` for each rank, or why it has none. It prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.session.runtime_frames import fold_calls, runtime_path
from pieglobalsfind.shell.escape import harmless
from pieglobalsfind.stacks.call_tree import Call, lines, merge


@dataclass(frozen=True)
class Stack:
    """A rank's frames, innermost first. `ends`: why they end before the outermost one, "" if they do not."""

    rank: int
    frames: tuple[Call, ...]
    ends: str = ""

    def __iter__(self) -> Iterator[Call]:
        return iter(self.frames)

    def __str__(self) -> str:
        """One line for each frame, as debuggers print them."""
        shown = [harmless(f"#{number:<2} {_frame(call)}") for number, call in enumerate(self.frames)]
        return "\n".join([*shown, *([f"({harmless(self.ends)})"] if self.ends else [])])


def stacks_of(view: ProcessView, ranks: Optional[Sequence[int]], runtime: bool) -> dict[int, Union[Stack, Absent]]:
    """The stacks of some ranks, or of all; raises `UsageError` for a rank that the process does not have."""
    wanted = [
        view.rank(number) for number in (ranks if ranks is not None else [rank.rank for rank in view.table.ranks])
    ]
    path = "" if runtime else runtime_path(view.table, view.translator)
    stacks: dict[int, Union[Stack, Absent]] = {}
    for rank, walked in view.walker.stacks(wanted):
        if isinstance(walked, RanklensError):
            stacks[rank.rank] = Absent(walked.sentence, walked.hint)
        else:
            calls = walked.calls if runtime else fold_calls(path, walked.calls)
            stacks[rank.rank] = Stack(rank.rank, tuple(reversed(calls)), walked.ends)
    return {number: stacks[number] for number in sorted(stacks)}


def tree(stacks: Mapping[int, Union[Stack, Absent]]) -> str:
    """All stacks as one call tree, each call with the ranks that are in it, and below it why ranks have none."""
    paths = [(rank, stack.frames[::-1]) for rank, stack in stacks.items() if isinstance(stack, Stack)]
    shown = [harmless(line) for line in lines(merge(paths))]
    reasons: dict[str, list[int]] = {}
    for rank, walked in stacks.items():
        if isinstance(walked, Absent):
            reasons.setdefault(walked.reason.replace(f"rank {rank} ", "it "), []).append(rank)
    return "\n".join([*shown, *(f"no stack of [{compact(ranks)}]: {harmless(why)}" for why, ranks in reasons.items())])


def _frame(call: Call) -> str:
    place = f" at {call.file}:{call.line}" if call.file else f" from {call.library}" if call.library else ""
    return f"{call.function} (){place}"
