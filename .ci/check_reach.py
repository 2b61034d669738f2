#!/usr/bin/env python3
"""Finds calls that reach through three objects, as `self.a.b.c.d()`; exit status 1 if there are any.

Takes the packages' folders as arguments; run it in the project's folder. A method that needs `c` is given `c`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 3  # names between `self` and the parenthesis


def reach(function: ast.expr) -> int:
    """How many names follow `self` in what is called; 0 if it does not begin with `self`."""
    names = 0
    while isinstance(function, ast.Attribute):
        function, names = function.value, names + 1
    return names if isinstance(function, ast.Name) and function.id == "self" else 0


def findings(path: Path) -> Iterator[str]:
    """Each such call of a module, as compilers print them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and reach(node.func) > LONGEST:
            place = f"{path}:{node.lineno}:{node.col_offset + 1}"
            yield f"{place}: {ast.unparse(node.func)}() reaches through three objects"


def main() -> int:
    """Print all findings."""
    found = [line for folder in sys.argv[1:] for path in sorted(Path(folder).rglob("*.py")) for line in findings(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
