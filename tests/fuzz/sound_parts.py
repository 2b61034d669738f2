"""Parts of a decoder that an input's damage can't reach are computed once, and not anew for each input.

A part is a function that reads a target. What it reads of the sound target is noted: a damaged target that has the same
bytes there leads it the same way, to the same result. So a part is left out only if its other arguments are those of
the sound target, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, Optional

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.target import MemoryMapping
from tests.fuzz.patches import MOST_READS, WINDOW, DamagedTarget, InFrontOf, StandingTarget

VALUES = (int, str, bytes, type(None), MemoryMapping)
DEEPEST = 3  # containers in one another
SOUND: dict[int, object] = {id(one): one for one in PROCESSORS.values()}  # results that follow from sound bytes alone


class NotingTarget(InFrontOf):
    """A sound target that notes which windows of its memory are read."""

    def __init__(self, sound: StandingTarget) -> None:
        super().__init__(sound)
        self.windows: set[int] = set()

    def answer(self, address: int, size: int) -> Optional[bytes]:
        """As the sound target."""
        self.windows.update(range(address // WINDOW, (address + size - 1) // WINDOW + 1))
        return self.sound.answer(address, size)


class Part:
    """A function whose results are kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._known: dict[Hashable, Optional[tuple[object, NotingTarget]]] = {}

    def __call__(self, target: Any, *words: Any) -> Any:
        place = named((target.sound, *words), DEEPEST) if isinstance(target, DamagedTarget) else None
        if place is None:
            return self._function(target, *words)
        if place not in self._known:
            if len(self._known) >= MOST_READS:
                self._known.clear()
            self._known[place] = self._of_sound(target.sound, words)
        kept = self._known[place]
        if kept is None or not kept[1].windows.isdisjoint(target.windows):
            return self._function(target, *words)
        return kept[0]

    def _of_sound(self, sound: StandingTarget, words: Sequence[object]) -> Optional[tuple[object, NotingTarget]]:
        target = NotingTarget(sound)
        try:
            result = self._function(target, *words)
        except RanklensError:
            return None
        remember(result, DEEPEST)
        return result, target


def keep(module: ModuleType, *names: str) -> None:
    """Keep the results of these functions of a module, which take a target first; no caller may change a result."""
    for name in names:
        setattr(module, name, Part(getattr(module, name)))


def remember(value: Any, depth: int) -> None:
    """Note that a value, and what it contains, follows from sound bytes."""
    SOUND[id(value)] = value
    contained: Iterable[object] = ()
    if depth and isinstance(value, (tuple, list, frozenset)):
        contained = value
    elif depth and isinstance(value, dict):
        contained = value.values()
    elif depth and is_dataclass(value):
        contained = (getattr(value, one.name) for one in fields(value))
    for one in contained:
        if not isinstance(one, VALUES):
            remember(one, depth - 1)


def named(value: Any, depth: int) -> Optional[Hashable]:
    """What a sound value is known by; None if it may follow from damaged bytes."""
    if id(value) in SOUND:
        return id(value)
    if isinstance(value, VALUES):
        return value
    if depth and isinstance(value, dict):
        value = tuple(part for pair in value.items() for part in pair)
    if not depth or not isinstance(value, (tuple, list, frozenset)):
        return None
    parts = tuple(named(part, depth - 1) for part in value)
    return None if any(part is None and of is not None for part, of in zip(parts, value)) else (type(value), parts)
