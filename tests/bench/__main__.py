"""`make bench`: run every benchmark of this folder and write docs/benchmarks.md.

Each module beside this one has `run() -> Result`; what it demands are ratios measured in one run, never absolute times.
"""

from __future__ import annotations

import importlib
import pkgutil
import platform
import sys
from pathlib import Path

from tests import bench

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

Written by `make bench`; do not edit. Ratios are taken within one run on one machine; times are there to give a feeling.

Machine: {machine}, Linux {kernel}, Python {python}.
"""


def main() -> int:
    wanted = set(sys.argv[1:])
    results = [
        importlib.import_module(f"tests.bench.{module.name}").run()
        for module in pkgutil.iter_modules(bench.__path__)
        if module.name not in ("__main__", "result") and (not wanted or module.name in wanted)
    ]
    for result in results:
        print(result.as_markdown())
    if not wanted:
        DOCUMENT.write_text("\n".join([introduction(), *(result.as_markdown() for result in results)]))
        print(f"written: {DOCUMENT}")
    return 0 if all(result.reached for result in results) else 1


def introduction() -> str:
    processor = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return INTRODUCTION.format(machine=processor, kernel=platform.release(), python=platform.python_version())


if __name__ == "__main__":
    raise SystemExit(main())
