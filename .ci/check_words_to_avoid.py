"""Finds turns in documents and sources that docs/development.md asks to write plainly; exit status 1 if there are any.

Takes no arguments; run it in the project's folder. It reads the words to avoid from the table in that page.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path("docs/development.md")
READ = ("README.md", "docs/*.md", "gdbext", "inspector", "lldbext", "pieglobalsfind", "runtime-hooks")
HEADING = "## Words to avoid"


def phrases() -> list[str]:
    """The first column of the table, one phrase each."""
    table = PAGE.read_text().partition(HEADING)[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [phrase.strip() for row in rows[2:] for phrase in row.split(",")]


def tracked() -> list[Path]:
    """The documents, and the product's sources."""
    names = subprocess.run(["git", "ls-files", "-z", *READ], capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in names.split("\0") if name.endswith((".md", ".py", ".c", ".h", ".cpp", ".S"))]


def findings(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Each place of a file, as compilers print them."""
    text = path.read_text()
    if path == PAGE:
        text = text.partition(HEADING)[0]
    for number, line in enumerate(text.splitlines(), 1):
        for match in pattern.finditer(line):
            yield f"{path}:{number}:{match.start() + 1}: {match.group()!r}: see {PAGE}, {HEADING.strip('# ')}"


def main() -> int:
    """Print all findings."""
    words = "|".join(re.escape(phrase) for phrase in phrases())
    pattern = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    found = [line for path in tracked() for line in findings(path, pattern)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
