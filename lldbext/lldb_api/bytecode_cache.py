"""Lets Python cache our modules' bytecode (.pyc), which LLDB switches off.

Takes nothing. To compile what the extension imports costs twice what all the rest of importing it does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """What is imported inside is kept, unless the user forbids it (PYTHONDONTWRITEBYTECODE)."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
