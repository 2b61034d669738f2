"""Asks all that can be asked of debug information, of each file in its arguments, within bounded work.

Run as a program: what is refused in a sentence is fine; anything else ends it, as does a question without an end.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from typing import Any

from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.argument_locations import ArgumentReader
from pieglobalsfind.dwarf.cfi import CodeFile
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.libdw.die_reader import Reader
from pieglobalsfind.dwarf.locals import LocalReader
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.errors import RanklensError

MOST_STEPS = 30_000  # of one file; sound ones take a tenth
MOST_SECONDS = 100  # of processor time, of all files
ADDRESSES = range(0x1000, 0x1400, 7)  # code of small objects


def ask(path: str) -> None:
    information = DebugInfo.open(path)
    for variable in information.declared:
        type_name(information.types, variable.type, variable.language)
        information.types.strip(variable.type)
    variable_cache.encode(information.declared, information.reader)
    information.root("struct node")
    information.root("missing")
    code = CodeFile(path)
    arguments, variables = ArgumentReader(code), LocalReader(code)
    for address in ADDRESSES:
        information.line(address)
        information.function(address)
        code.calls(address)
        code.rules(address)
        arguments.calls(address)
        arguments.passed(address)
        locals_at = variables.at(address)
        for local in locals_at.variables if locals_at is not None else ():
            type_name(variables.types, local.type, local.language)
            variables.types.size(local.type)
    information.close()


class Steps:
    """How often the file's entries were asked anything."""

    def __init__(self) -> None:
        self.taken = 0

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **named: Any) -> Any:
            self.taken += 1
            if self.taken > MOST_STEPS:
                raise RuntimeError("a question without an end")
            return function(*words, **named)

        return counted


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    steps = Steps()
    for name in ("tag", "_find", "reference"):
        setattr(Reader, name, steps.counting(getattr(Reader, name)))
    for path in sys.argv[1:]:
        steps.taken = 0
        try:
            ask(path)
        except RanklensError as error:
            print(error)
        except BaseException:
            print(path, file=sys.stderr)
            raise
    print("asked")


if __name__ == "__main__":
    main()
