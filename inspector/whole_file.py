"""Writes a file in one step: a reader never sees half of it, and whoever is interrupted leaves nothing behind.

Takes a place and text; the file is its owner's alone, since it may hold a program's data.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pieglobalsfind.errors import UsageError


def write_whole(place: Path, text: str, hint: str) -> None:
    """Raises `UsageError` with `hint` if it can't be written. A link at `place` is replaced, not followed."""
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.stem[:40]}-")
    except OSError as error:
        raise UsageError(f"{place} can't be written, {error.strerror}", hint) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(name).replace(place)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise UsageError(f"{place} can't be written, {error.strerror}", hint) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
