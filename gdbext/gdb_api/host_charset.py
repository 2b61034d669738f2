"""Lets GDB's Python take and give text under a host charset that Python does not know, such as EBCDIC-US.

GDB has Python decode and encode all text by the name of its `host-charset`. Of a charset that Python does not know each
byte is taken for a character (Latin-1): names of commands and what GDB prints are ASCII in GDB whatever the charset.
"""

from __future__ import annotations

import codecs
import re
from typing import Optional

import gdb

_is_asking = False  # GDB for its charset, whose name Python has to decode, too


def bind() -> None:
    """Have Python ask here for codecs that it does not find."""
    codecs.register(codec)


def codec(name: str) -> Optional[codecs.CodecInfo]:
    """Return the codec for GDB's host charset; None of any other name, which stays unknown."""
    global _is_asking
    if not _is_asking:
        _is_asking = True
        try:
            if plain(str(gdb.parameter("host-charset"))) != plain(name):
                return None
        finally:
            _is_asking = False
    return codecs.lookup("latin-1")


def plain(name: str) -> str:
    """The name of a charset as Python looks for it, which has changed with its versions."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower())
