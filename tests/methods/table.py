"""The table of docs/methods.md: which tool shows what under which method, made of what the tests have recorded.

A test records a cell when the cell's assertions have held; cells that can't be are in matrix.py. The file is written
only when every other cell has been recorded in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.methods.matrix import CHECKS, METHODS, SOURCES, TOOLS, impossible

PROPERTY = "methods cell"  # tests/conftest.py collects it
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "methods.md"
BEGIN, END = "<!-- written by the tests: begin -->\n", "<!-- written by the tests: end -->\n"

Cell = tuple[str, str, str, str]  # method, tool, source, check


@dataclass(frozen=True)
class Record:
    """Notes cells of one method and source as the test's properties, which reach the table from every process."""

    method: str
    source: str
    note: Callable[[str, object], None]

    def __call__(self, tool: str, check: str) -> None:
        self.note(PROPERTY, (self.method, tool, self.source, check))


def wanted() -> set[Cell]:
    """The cells that a whole run records."""
    return {
        (method, tool, source, check)
        for method in METHODS
        for tool in TOOLS
        for source in SOURCES
        for check in CHECKS
        if not impossible(method, tool, source, check)
    }


def update(recorded: Iterable[tuple[str, ...]]) -> bool:
    """Write the table if nothing is missing; whether it was whole."""
    if not wanted() <= set(recorded):
        return False
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    changed = before + BEGIN + "\n".join(lines()) + "\n" + END + after
    if changed != text:
        DOCUMENT.write_text(changed)
    return True


def lines() -> list[str]:
    notes: dict[str, int] = {}
    found: list[str] = []
    for tool in TOOLS:
        found += ["", f"### {tool}", "", f"| | {' | '.join(CHECKS)} |", f"|---|{'---|' * len(CHECKS)}"]
        for method in METHODS:
            cells = (cell(method, tool, check, notes) for check in CHECKS)
            found.append(f"| `{method}` | {' | '.join(cells)} |")
    return [*found, "", *(f"{number}. {reason}" for reason, number in notes.items())]


def cell(method: str, tool: str, check: str, notes: dict[str, int]) -> str:
    """`live, core` as far as tests passed; the number of the reason where one is impossible."""
    parts = []
    for source in SOURCES:
        reason = impossible(method, tool, source, check)
        parts.append(source if reason is None else f"[{notes.setdefault(reason, len(notes) + 1)}]")
    return parts[0] if parts[0] == parts[1] else ", ".join(parts)
