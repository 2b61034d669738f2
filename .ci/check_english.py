"""Finds turns in the documents that docs/development.md asks to write plainly; exit status 1 if there are any.

Takes no arguments; run it in the project's folder. It reads the words to avoid from the table in that page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path("docs/development.md")
HEADING = "## Words to avoid"


def phrases() -> list[str]:
    """The first column of the table, one phrase each."""
    table = PAGE.read_text().partition(HEADING)[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [phrase.strip() for row in rows[2:] for phrase in row.split(",")]


def findings(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Each place of a document, as compilers print them."""
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
    found = [
        line for path in (Path("README.md"), *sorted(Path("docs").glob("*.md"))) for line in findings(path, pattern)
    ]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
