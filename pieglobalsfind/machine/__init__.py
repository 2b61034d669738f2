"""What differs between processors: a table for each (`x86_64.py`, `aarch64.py`), chosen by a target's ELF machine."""

from __future__ import annotations
