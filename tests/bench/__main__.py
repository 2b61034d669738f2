"""`make bench`: run every benchmark of this folder and write docs/benchmarks.md.

Each module beside this one has `run() -> Result`; what it demands are ratios measured in one run, never absolute times.
Named as arguments, some modules alone are run, and their sections written anew.
"""

from __future__ import annotations

import importlib
import pkgutil
import platform
import sys
from dataclasses import replace
from pathlib import Path

from tests import bench
from tests.bench.result import Result

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

Written by `make bench`; do not edit. Ratios are taken within one run on one machine; times are there to give a feeling.

Machine: {machine}.
"""


def main() -> int:
    wanted = set(sys.argv[1:])
    results = [
        importlib.import_module(f"tests.bench.{module.name}").run()
        for module in pkgutil.iter_modules(bench.__path__)
        if module.name not in ("__main__", "plot", "result") and (not wanted or module.name in wanted)
    ]
    for result in results:
        print(result.as_markdown())
    for picture in (picture for result in results for picture in result.pictures):
        DOCUMENT.with_name(picture.file).write_text(picture.content)
    if wanted:
        DOCUMENT.write_text(with_sections(DOCUMENT.read_text(), results))
    else:
        DOCUMENT.write_text("\n".join([introduction(), *(result.as_markdown() for result in results)]))
    print(f"written: {DOCUMENT}")
    return 0 if all(result.reached for result in results) else 1


def with_sections(document: str, results: list[Result]) -> str:
    """The document with the sections of these results in place of older ones; each says where it was measured."""
    head, *sections = document.split("\n## ")
    found = {section.partition("\n")[0]: section.strip("\n") for section in sections}
    for result in results:
        alone = replace(result, how=f"{result.how} Measured by itself on {machine()}.")
        found[result.title] = alone.as_markdown().removeprefix("## ").strip("\n")
    return "\n\n## ".join([head.rstrip("\n"), *found.values()]) + "\n"


def introduction() -> str:
    return INTRODUCTION.format(machine=machine())


def machine() -> str:
    processor = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return f"{processor}, Linux {platform.release()}, Python {platform.python_version()}"


if __name__ == "__main__":
    raise SystemExit(main())
