#!/usr/bin/env python3
"""Check which way the C sources of the embedded runtime include one another.

A folder may include its own files and those of folders further left in LAYERS.  A module (NAME.h and NAME.c)
is in no circle of includes.  A source that is in no folder of LAYERS, or a header that no folder has, is an error.

Prints a sentence for each violation and exits with 1; prints nothing and exits with 0 if there is none.
"""

import re
import sys
from pathlib import Path

LAYERS = ("machine", "image", "libc", "ranks", "methods", "job", "mpi/objects", "mpi/calls", "launch")
# Parts of a folder that programs use as well: they are no part of the runtime's own order.
APART = ("libc/libc_state", "mpi/include")
# Headers outside the folders: the debug ABI, what programs include, and MPIR's table.
PUBLIC = {"rank_debug.h", "rank_hooks.h", "mpi.h", "rank_program.h", "mpir.h", "file_limit.h", "frame.h"}
SUFFIXES = {".c", ".h", ".cpp", ".S"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

Includes = dict[Path, list[str]]


def read_includes(root: Path) -> Includes:
    """What each source under `root` includes by quotes; paths are relative to `root`."""
    sources = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES)
    relative = {path: path.relative_to(root) for path in sources}
    return {
        name: INCLUDE.findall(path.read_text(encoding="utf-8"))
        for path, name in relative.items()
        if not name.as_posix().startswith(APART)
    }


def wrong_directions(includes: Includes) -> list[str]:
    """A sentence for each source without a layer and each include that is unknown or goes to a higher layer."""
    errors = []
    for source, headers in includes.items():
        layer = source.parent.as_posix()
        if layer not in LAYERS:
            errors.append(f"{source} is in no layer; the layers are {', '.join(LAYERS)}")
            continue
        for header in headers:
            if header in PUBLIC:
                continue
            if Path(header) not in includes:
                errors.append(f"{source} includes {header}, which no layer has: name it as FOLDER/FILE.h")
            elif LAYERS.index(Path(header).parent.as_posix()) > LAYERS.index(layer):
                errors.append(f"{source} includes {header}, of a layer above its own")
    return errors


def module_graph(includes: Includes) -> dict[str, set[str]]:
    """The modules that each module includes."""
    graph: dict[str, set[str]] = {source.with_suffix("").as_posix(): set() for source in includes}
    for source, headers in includes.items():
        module = source.with_suffix("").as_posix()
        others = {Path(header).with_suffix("").as_posix() for header in headers}
        graph[module] |= {other for other in others if other in graph and other != module}
    return graph


def modules_in_circles(graph: dict[str, set[str]]) -> list[str]:
    """The modules that are in a circle, or lie between two, sorted."""
    left = {module: set(others) for module, others in graph.items()}
    while True:
        included = set().union(*left.values()) if left else set()
        ends = [module for module, others in left.items() if not others or module not in included]
        if not ends:
            return sorted(left)
        for module in ends:
            del left[module]
        for others in left.values():
            others.difference_update(ends)


def violations(root: Path) -> list[str]:
    """A sentence for everything that is wrong under `root`."""
    includes = read_includes(root)
    errors = wrong_directions(includes)
    circle = modules_in_circles(module_graph(includes))
    if circle:
        errors.append(f"modules include one another in a circle: {', '.join(circle)}")
    return errors


def main() -> int:
    """Check the folder that the command line names, or the runtime's own."""
    default = Path(__file__).resolve().parent.parent / "runtime-hooks" / "embedded"
    errors = violations(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
