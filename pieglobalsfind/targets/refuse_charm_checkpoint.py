"""Refuse a Charm++ checkpoint that was named as a core file, and say what to do instead.

Takes a path; reads no content. Such a folder holds objects as their own routines packed them, for the runtime alone.
"""

from __future__ import annotations

from pathlib import Path

from pieglobalsfind.errors import TargetError

ALWAYS = ("RO.dat", "MainChares.dat")  # ckcheckpoint.C writes both, whatever the program has
DEEPEST = 3  # folders between such a folder and its files: sub0/sub0/arr_0.dat


def check_is_none(path: str) -> None:
    """Raise `TargetError` if the path is such a folder, or a file in one."""
    place = Path(path).absolute()
    for folder in (place, *place.parents)[: DEEPEST + 1]:
        if all((folder / name).is_file() for name in ALWAYS):
            raise TargetError(
                f"{folder} is a checkpoint of Charm++ (AMPI), which only Charm++ can read",
                f"start the program with `+restart {folder}`, and name its process",
            )
