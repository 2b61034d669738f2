"""Write texts of unordered containers that are equal if the contents are, in whatever order they lie in memory.

Takes the texts of elements; gives a text with marks around and between them, from which `in_memory_order` makes what
GDB prints, and `without_order` what is equal for equal contents. The marks are control characters, which no text of a
value has: strings are shown with such characters escaped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

BEGIN, BETWEEN, BEYOND, NUMBERED, CUT, END = "\x1c", "\x1d", "\x1e", "\x1f", "\x19", "\x1a"
INNERMOST = re.compile(f"{BEGIN}([^{BEGIN}{END}]*){END}")


def marked(parts: list[str], shown: int, is_numbered: bool, is_cut: bool) -> str:
    """Elements in memory order, of which the first are shown; `is_numbered`: each with its number.

    `is_cut`: there are more, so that nothing says which elements two ranks share.
    """
    head, tail = (BETWEEN.join(part) for part in (parts[:shown], parts[shown:]))
    beyond = f"{BEYOND}{tail}" if tail or is_cut else ""
    return f"{BEGIN}{NUMBERED if is_numbered else ''}{CUT if is_cut else ''}{head}{beyond}{END}"


def in_memory_order(text: str) -> str:
    """`{[0] = 1, [1] = 2}`, as GDB prints it."""
    return _replaced(text, _listed)


def without_order(text: str) -> str:
    """Equal for equal elements, whatever their order."""
    return _replaced(text, _sorted)


def _replaced(text: str, written: Callable[[str], str]) -> str:
    number = 1
    while number and BEGIN in text:
        text, number = INNERMOST.subn(lambda match: written(match[1]), text)
    return text


def _listed(inner: str) -> str:
    head, beyond, _ = inner.lstrip(NUMBERED + CUT).partition(BEYOND)
    parts = head.split(BETWEEN) if head else []
    if inner.startswith(NUMBERED):
        parts = [f"[{number}] = {part}" for number, part in enumerate(parts)]
    return "{" + ", ".join(parts) + ("..." if beyond else "") + "}"


def _sorted(inner: str) -> str:
    if CUT in inner:
        return "{...}"
    parts = sorted(inner.lstrip(NUMBERED).replace(BEYOND, BETWEEN).split(BETWEEN))
    return "{" + hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest() + "}"
