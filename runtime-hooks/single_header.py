#!/usr/bin/env python3
"""Print rank_debug.h, rank_hooks.h and their implementation as one header, which runtimes copy into their own tree.

    single_header.py > rank_hooks_single.h

The implementation is compiled in the one source that defines RANK_HOOKS_IMPLEMENTATION before it includes the header.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HEADERS = ("include/rank_debug.h", "include/rank_hooks.h")
SOURCES = ("src/registry.c", "src/describe_object.c")
OWN = re.compile(r'^#include "rank_\w+\.h"\n', re.MULTILINE)
FEATURES = re.compile(r"^#define _GNU_SOURCE\n", re.MULTILINE)

OPENING = """\
/*
 * rank_hooks_single.h: the debug ABI of ranklens and what fills its registry, in one header.  It is made of
 * rank_debug.h, rank_hooks.h, registry.c and describe_object.c; change those.
 *
 * Include it wherever the functions are called.  In one C source of your runtime write before all other includes:
 *
 *     #define RANK_HOOKS_IMPLEMENTATION
 *     #include "rank_hooks_single.h"
 */
#if defined(RANK_HOOKS_IMPLEMENTATION) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
"""


def parts(names: Iterable[str]) -> str:
    """The files one after the other, without what includes one another and asks for libc's features."""
    return "\n".join(FEATURES.sub("", OWN.sub("", (FOLDER / name).read_text())) for name in names)


def main() -> int:
    """Print the header."""
    license_text = "".join(f" * {line}\n".replace(" \n", "\n") for line in licence())
    implementation = f"#ifdef RANK_HOOKS_IMPLEMENTATION\n{parts(SOURCES)}#endif /* RANK_HOOKS_IMPLEMENTATION */\n"
    sys.stdout.write(f"/*\n{license_text} */\n{OPENING}\n{parts(HEADERS)}\n{implementation}")
    return 0


def licence() -> list[str]:
    return (FOLDER.parent / "LICENSE").read_text().splitlines()


if __name__ == "__main__":
    sys.exit(main())
