"""The core of ranklens: from the bytes of a target to its ranks, and from any address to rank, object, symbol, line.

docs/architecture.md shows how the modules follow one another, docs/library.md what Python programs may use. It needs
the standard library alone and knows no debugger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # debuggers import this package and need none of it
    from pieglobalsfind.errors import MemoryUnreadable as MemoryUnreadable
    from pieglobalsfind.errors import NotVirtualizedError as NotVirtualizedError
    from pieglobalsfind.errors import RanklensError as RanklensError
    from pieglobalsfind.errors import RegistryError as RegistryError
    from pieglobalsfind.errors import TargetError as TargetError
    from pieglobalsfind.errors import UsageError as UsageError
    from pieglobalsfind.library.job import Job as Job
    from pieglobalsfind.library.job import open as open
    from pieglobalsfind.library.stacks import Stack as Stack
    from pieglobalsfind.library.stacks import tree as tree
    from pieglobalsfind.library.variables import Value as Value
    from pieglobalsfind.library.wait_for_job import HangError as HangError
    from pieglobalsfind.library.wait_for_job import job_stacks as job_stacks
    from pieglobalsfind.library.wait_for_job import wait as wait
    from pieglobalsfind.model import Absent as Absent
    from pieglobalsfind.model import Owner as Owner
    from pieglobalsfind.model import Rank as Rank
    from pieglobalsfind.model import RankTable as RankTable
    from pieglobalsfind.model import Symbol as Symbol
    from pieglobalsfind.stacks.call_tree import Call as Call

_PLACES = {
    "errors": (
        "MemoryUnreadable", "NotVirtualizedError", "RanklensError", "RegistryError", "TargetError", "UsageError"
    ),
    "library.wait_for_job": ("HangError", "job_stacks", "wait"),
    "library.job": ("Job", "open"),
    "library.stacks": ("Stack", "tree"),
    "library.variables": ("Value",),
    "model": ("Absent", "Owner", "Rank", "RankTable", "Symbol"),
    "stacks.call_tree": ("Call",),
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Import what is asked for (PEP 562)."""
    for module, names in _PLACES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"pieglobalsfind.{module}"), name)
    raise AttributeError(f"module 'pieglobalsfind' has no attribute {name!r}")
