"""Text that a screen shows as what it is: no control character reaches it.

Takes any string; gives one whose control and invisible characters are spelled out. It imports nothing that takes time.
"""

from __future__ import annotations

import unicodedata

LONGEST = 400  # characters
_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories a terminal may take for more than letters


def escape(text: str) -> str:
    """`text` with control and invisible characters but newlines spelled out: `\\033`, `\\u202e`."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(
        character if character == "\n" or unicodedata.category(character) not in _UNSAFE else _spelled(character)
        for character in text
    )


def harmless(text: str, most: int = LONGEST) -> str:
    """`text` in one line, control and invisible characters spelled out, cut at `most` characters with "..."."""
    shown = escape(text[:most]).replace("\n", "\\012")
    return shown + "..." if len(text) > most else shown


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\{code:03o}" if code < 0x100 else f"\\u{code:04x}"
