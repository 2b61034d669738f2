"""Carries pretty-printers and frame filters from a file's symbols to each rank's.

Takes GDB's object files. GDB runs PROGRAM-gdb.py once it reads the program, and forgets with the object file what that
has attached; here it goes on from the program's own file to each rank's.
"""

from __future__ import annotations

from typing import Any

import gdb

SETTABLE = ("pretty_printers", "type_printers", "frame_filters", "frame_unwinders")
IN_PLACE = ("xmethods",)

Attached = dict[str, Any]


def attached_to(objfile: gdb.Objfile) -> Attached:
    """Return what scripts have attached, by the names of the attributes; the collections themselves."""
    attached = {name: getattr(objfile, name, None) for name in (*SETTABLE, *IN_PLACE)}
    return {**vars(objfile), **{name: kept for name, kept in attached.items() if kept}}


def attach(attached: Attached, objfile: gdb.Objfile) -> None:
    """Attach the same to another object file, which has nothing yet."""
    for name, kept in attached.items():
        if name in IN_PLACE:
            getattr(objfile, name).extend(kept)
        else:
            setattr(objfile, name, kept)
