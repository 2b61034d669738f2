"""Goes through the DIEs below one, each once, whatever a damaged file says of who is whose child.

Takes a `Reader` and a DIE; gives DIEs in the order of the file. It knows no tag: the caller says where it wants to go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Optional, TypeVar

from pieglobalsfind.dwarf.libdw.bindings import Die
from pieglobalsfind.dwarf.libdw.die_reader import Reader

DEEPEST = 200  # levels below the first DIE; compilers stop far earlier
State = TypeVar("State")
Enter = Callable[[Die, int, State], Optional[State]]


def walk(reader: Reader, around: Die, state: State, enter: Enter[State]) -> Iterator[tuple[Die, int, State]]:
    """A DIE, its tag, and the state of the DIE that holds it. `enter` gives the state inside; None: skip it.

    In a sound file each DIE lies after all that come before it. In a damaged one a list may lead back into what was
    gone through, again and again at every level; it ends there, so that no DIE is given twice.
    """
    last = around.addr or 0
    lists = [(reader.children(around), state)]
    while lists:
        children, state = lists[-1]
        die = next(children, None)
        if die is None or (die.addr or 0) <= last:
            lists.pop()
            continue
        last = die.addr or 0
        tag = reader.tag(die)
        yield die, tag, state
        inner = enter(die, tag, state) if len(lists) <= DEEPEST else None
        if inner is not None:
            lists.append((reader.children(die), inner))
