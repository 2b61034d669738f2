"""Where the functions of a unit lie, kept so that the second look at a file needs no walk through the unit's DIEs.

Takes the state of a file and which of its units is meant; gives ranges of addresses with the places of functions' DIEs.
An entry that is not of this form is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, Optional

from pieglobalsfind.cache.elf_file_cache import FileState, load, store

KIND = "functions-1-"  # changes with the form of what is stored, and with what it says


class FunctionRange(NamedTuple):
    """A function's code in [low, high), the offset of its DIE, and the Fortran module or procedure that holds it."""

    low: int
    high: int
    die: int
    scope: str


def kept_functions(file: Optional[FileState], unit: int) -> Optional[list[FunctionRange]]:
    """The functions of a file's unit, by its number; None if they are not kept."""
    data = load(file, f"{KIND}{unit}")
    if data is None:
        return None
    try:
        function_ranges = [FunctionRange(*row) for row in json.loads(data)]
    except (ValueError, TypeError, RecursionError):
        return None
    is_sound = all(
        type(function_range.low) is type(function_range.high) is type(function_range.die) is int
        and isinstance(function_range.scope, str)
        for function_range in function_ranges
    )
    return function_ranges if is_sound else None


def keep_functions(file: Optional[FileState], unit: int, functions: Sequence[FunctionRange]) -> None:
    """Keep them for the next time; `file` is the state from before the file was read."""
    store(file, f"{KIND}{unit}", json.dumps(functions).encode())
