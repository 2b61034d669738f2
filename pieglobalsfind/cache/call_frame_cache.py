"""Call frame rules and calls by address of a file, kept so that the next look at the same calls opens no file.

Takes the state of a file; gives `Rules` and `CallAt`s. Programs return to the same few places all the time. It ignores
an entry that is not of this form.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Optional

from pieglobalsfind.cache.elf_file_cache import FileState, load, store

KIND = "calls-1"  # changes with the form of what is stored, and with what it says
MOST = 20_000  # addresses of a file that are kept


class Rules(NamedTuple):
    """How to get from a frame to its caller's. `saved`: (DWARF register, distance from the CFA where it lies).

    Other callee-saved registers are unchanged, and so is a link register. Where the return address is undefined
    (`is_last`) the stack ends here.
    """

    cfa_register: int
    cfa_offset: int
    saved: tuple[tuple[int, int], ...]
    is_last: bool


class CallAt(NamedTuple):
    """One function that is active at a pc; inlined ones come before the one that holds them."""

    function: str
    file: str
    line: int


class CallCache:
    """What is known of a file's addresses; `file` is its state from before it was opened, None: nothing is kept."""

    def __init__(self, file: Optional[FileState]) -> None:
        self._file = file
        self.rules: dict[int, Rules] = {}
        self.calls: dict[int, tuple[CallAt, ...]] = {}
        data = load(file, KIND)
        if data is not None:
            self._read(data)
        self._stored = len(self.rules), len(self.calls)

    def _read(self, data: bytes) -> None:
        """All of an entry, or nothing."""
        try:
            document = json.loads(data)
            rules = {int(vaddr): _rules(*row) for vaddr, row in document["rules"].items()}
            calls = {int(vaddr): tuple(_call(*row) for row in rows) for vaddr, rows in document["calls"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return
        self.rules, self.calls = rules, calls

    def keep(self) -> None:
        """Keep what was added for the next time."""
        sizes = len(self.rules), len(self.calls)
        if self._file is None or sizes == self._stored or max(sizes) > MOST:
            return
        self._stored = sizes
        store(self._file, KIND, json.dumps({"rules": self.rules, "calls": self.calls}).encode())


def _rules(cfa_register: Any, cfa_offset: Any, saved: Any, is_last: Any) -> Rules:
    """Raises `TypeError` or `ValueError` for anything else than what was stored."""
    pairs = tuple((register, offset) for register, offset in saved)
    numbers = [cfa_register, cfa_offset, *(number for pair in pairs for number in pair)]
    if not isinstance(is_last, bool) or any(type(number) is not int for number in numbers):
        raise TypeError("it is not a rule")
    return Rules(cfa_register, cfa_offset, pairs, is_last)


def _call(function: Any, file: Any, line: Any) -> CallAt:
    if not isinstance(function, str) or not isinstance(file, str) or type(line) is not int:
        raise TypeError("it is not a call")
    return CallAt(function, file, line)
