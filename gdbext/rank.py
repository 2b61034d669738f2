"""What users source in GDB: `source gdbext/rank.py`.

Takes GDB's Python; puts the project's root on `sys.path` and switches the extension on, once. Knows nothing else.
"""

import sys
from pathlib import Path

import gdb

OLDEST = (12, 1)


def version() -> "tuple[int, ...]":
    """GDB's own version, (13, 1); vendors' suffixes are left out."""
    numbers = gdb.VERSION.split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, number)) or 0) for number in numbers)


def main() -> None:
    if version() < OLDEST or sys.version_info < (3, 9):
        print(f"ranklens needs GDB {OLDEST[0]}.{OLDEST[1]} with Python 3.9 or newer, this is GDB {gdb.VERSION}")
        return
    root = str(Path(__file__).resolve().parent.parent)
    if root not in sys.path:
        sys.path.append(root)
    from gdbext import extension

    extension.switch_on()


main()
