"""The report as one HTML file: searchable tables, and pictures where people would rather look than read.

Takes a `Report` and what else it draws; gives text. Nothing in the file comes from elsewhere, all that comes from the
target is escaped by Jinja2, and the browser may run no script but the one that is here.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Optional, Union

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pieglobalsfind.debugger.wording import waiting_text
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.shell.atomic_file import write_whole
from pieglobalsfind.stacks.call_tree import MOST_LINES, Call

from ..analysis.global_values import Globals
from ..analysis.migration_cost import WhatIf
from ..analysis.payload import CATEGORIES, Payload
from ..analysis.rank_memory import holdings
from ..analysis.report import Report, diagnosis_as_json, verdict_as_json
from ..analysis.verdict import Verdict
from ..terminal.text import byte_count, declared, harmless, of_ranks
from .global_tables import left_out, value_rows
from .load_tables import RANK_COLUMNS, RankCells, sentences
from .rank_tables import rank_row
from .report_text import summary
from .table_cells import MOST_RANK_ROWS, by_cells, range_text, ranks_text
from .wait_chains import chains
from .wait_picture import WaitDrawing, drawing, picture

FOLDER = Path(__file__).resolve().parent / "templates"
WIDTH, ROW = 1000, 18  # of pictures, in the units of their view boxes
MOST_BARS = 64
SMALLEST_LABEL = 40
LETTER = 6.5  # of a label in a box
LONGEST_LABEL = 17  # letters that there is room for before a bar
COLOURS = ("#4c78a8", "#9ecae9", "#f58518", "#ffbf79", "#54a24b", "#88d27a", "#b79a20", "#e45756", "#ff9d98", "#79706e")
FLAME = ("#f6a04d", "#f2b56b", "#f7c98b", "#ee9a3a")

UNKNOWN_WIDTH = 40  # of a part whose size nothing tells: it is hatched, and outside of the scale
HATCHED = "url(#hatched)"


class Size(int):
    """Bytes: sorted as a number, shown with a unit."""

    @property
    def text(self) -> str:
        """Return the size with its unit."""
        return byte_count(int(self))


Cell = Union[str, int, Size]


@dataclass(frozen=True)
class Sheet:
    """A table of the page."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A coloured part of a bar."""

    x: float
    width: float
    colour: str
    title: str


@dataclass(frozen=True)
class Bar:
    """A bar: one rank's bytes, or equal ranks'."""

    label: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Bars:
    """`left`: ranks that there is no room for."""

    title: str
    caption: str
    rows: tuple[Bar, ...]
    legend: tuple[tuple[str, str], ...]
    left: int


@dataclass(frozen=True)
class Box:
    """One call of the flame graph."""

    x: float
    y: int
    width: float
    colour: str
    label: str
    title: str
    whole: str  # the label if there is room for all of it


@dataclass(frozen=True)
class Flame:
    """A flame graph."""

    caption: str
    boxes: tuple[Box, ...]
    height: int


def write(path: str, text: str) -> None:
    """For its owner's eyes alone; raises `UsageError` if it can't be written."""
    write_whole(Path(path), text, "name another file by --html")


def as_html(report: Report, verdict: Verdict, stacks: dict[int, tuple[Call, ...]], cases: Sequence[WhatIf]) -> str:
    """The whole file."""
    environment = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined)
    script = (FOLDER / "report.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        target=harmless(report.subject.description),
        summary=summary(report.subject),
        how=report.subject.how,
        taken=report.subject.taken,
        alarms=[*report.warnings, *(harmless(alarm.sentence) for alarm in report.pointers.alarms)],
        verdict=verdict_as_json(verdict),
        diagnoses=[diagnosis_as_json(diagnosis) for diagnosis in verdict.diagnoses],
        flame=flame(stacks, [rank.rank for rank in report.subject.present]),
        waits=waits_drawing(report),
        memory=memory_bars(report.payload),
        pages=page_bars(cases),
        tables=(ranks_sheet(report), load_sheet(report), globals_sheet(report), _pointers_sheet(report)),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


# ---- tables ----


def ranks_sheet(report: Report) -> Sheet:
    """Ranks of the same state in one row, as in the text; what differs from rank to rank as its range."""
    holding_rows = holdings(report.subject.table.ranks, report.payload)
    numbers = {holding.rank.rank: holding for holding in holding_rows}
    rows: list[tuple[Cell, ...]] = []
    grouped = by_cells((holding.rank.rank, rank_row(holding.rank, waiting_text)) for holding in holding_rows)
    if len(grouped) > MOST_RANK_ROWS:
        grouped = by_cells(
            (holding.rank.rank, rank_row(holding.rank, lambda waiting: waiting.call)) for holding in holding_rows
        )
    for cells, ranks in grouped.items():
        same = [numbers[rank] for rank in ranks]
        switches = range_text([holding.switches for holding in same], str)
        rows.append((ranks_text(ranks), *cells, switches, range_text([holding.total for holding in same], byte_count)))
    notes = by_cells((holding.rank.rank, (note,)) for holding in holding_rows for note in holding.unknown)
    columns = ("ranks", "state", "waits in", "element", "found by", "switches", "memory")
    return Sheet(
        "ranks", "Ranks", columns, tuple(rows), tuple(_note_of(note, ranks) for (note,), ranks in notes.items())
    )


def _note_of(note: str, ranks: Sequence[int]) -> str:
    return f"{of_ranks(ranks_text(ranks))}: {harmless(note)}"


def load_sheet(report: Report) -> Sheet:
    """How long each rank ran, and what it sent and received."""
    load = report.load
    if load is None:
        return Sheet("load", "Load", RANK_COLUMNS, (), ("Its runtime counts no load; `inspector load` takes samples.",))
    cells = RankCells(load)
    rows = tuple(cells.of(rank) for rank in load.ranks)
    notes = (f"{load.how}; {load.seconds:.3g} s", *sentences(load), *load.notes)
    return Sheet("load", "Load", RANK_COLUMNS, rows, tuple(map(harmless, notes)))


def globals_sheet(report: Report) -> Sheet:
    """Return the table of globals."""
    rows: list[tuple[Cell, ...]] = []
    for global_values in report.globals.values:
        place = declared(global_values.file, global_values.line)
        for ranks, value in value_rows(global_values):
            rows.append(
                (
                    global_values.name,
                    place,
                    global_values.type,
                    Size(global_values.size),
                    global_values.verdict,
                    ranks,
                    value,
                )
            )
    columns = ("variable", "declared", "type", "size", "verdict", "ranks", "value")
    return Sheet("globals", "Globals", columns, tuple(rows), tuple(_apart_notes(report.globals)))


def _apart_notes(variables: Globals) -> Iterator[str]:
    if variables.apart:
        yield left_out(variables.apart, "inspector globals --all")


def _pointers_sheet(report: Report) -> Sheet:
    rows: Iterable[tuple[Cell, ...]] = (
        (
            finding.rank,
            finding.verdict,
            finding.ground.symbol or finding.ground.source,
            finding.ground.type,
            hex(finding.address),
            hex(finding.old),
            hex(finding.new),
            "?" if isinstance(finding.right, Absent) else hex(finding.right),
        )
        for finding in report.pointers.findings
    )
    columns = ("rank", "verdict", "word", "type", "address", "was", "is", "right")
    notes = (_note_of(reason, ranks) for reason, ranks in report.pointers.unread_by_reason.items())
    return Sheet("pointers", "Pointers", columns, tuple(rows), tuple(notes))


# ---- pictures ----


def waits_drawing(report: Report) -> Optional[WaitDrawing]:
    """Which ranks wait for which; None where none waits for one that is known."""
    if report.waits is None or not (report.waits.peers or report.waits.cycles):
        return None
    table = report.subject.table
    return drawing(picture(table, report.waits, chains(table, report.waits)))


def memory_bars(payload: Sequence[Payload]) -> Bars:
    """Without the unused part of stacks, beside which all else would be too narrow to be seen."""
    names = [name for name in CATEGORIES if name != "stack_unused"]
    unused = sorted({sizes.stack_unused for sizes in payload})
    caption = "No rank's image is in what was read."
    if unused:
        sizes = " to ".join(dict.fromkeys(map(byte_count, (unused[0], unused[-1]))))
        caption = f"Ranks with the same sizes have one bar. Without the unused part of their stacks, {sizes} of each."
    rows = []
    for image in payload:
        parts = {name: getattr(image, name) for name in names}
        if image.is_stack_unknown:
            parts["stack_used"] = 0
        rows.append((image.rank, [(name.replace("_", " "), size) for name, size in parts.items()]))
    unknown = {sizes.rank: sizes.stack_used for sizes in payload if sizes.is_stack_unknown}
    if unknown:
        caption += " Hatched, outside the scale: a stack whose used part is unknown."
    return bars("memory by rank and category", caption, rows, unknown)


def page_bars(cases: Sequence[WhatIf]) -> Bars:
    """Return bars of pages by what they hold."""
    rows = []
    for case in cases:
        shared = max(case.common - case.original, 0)  # what is as in the original is common as well
        alone = max(case.used_stack - case.zero - case.original - shared - case.unread, 0)
        parts = [("zero", case.zero), ("as in the original", case.original), ("the same on others", shared)]
        rows.append((case.rank, [*parts, ("its own", alone), ("can't be read", case.unread)]))
    caption = (
        "What of each rank is zero, as in the original, the same on other ranks, or its own; without the unused stack."
    )
    return bars("pages", caption if rows else "No rank's pages were compared.", rows)


def bars(
    title: str,
    caption: str,
    rows: Sequence[tuple[int, list[tuple[str, int]]]],
    unknown: Mapping[int, int] = MappingProxyType({}),
) -> Bars:
    """A bar for the ranks whose parts have the same sizes, all to one scale.

    `unknown`: by rank, a size that is an upper bound alone, drawn after the bar and not to scale.
    """
    alike: dict[tuple[tuple[tuple[str, int], ...], int], list[int]] = {}
    for rank, parts in rows:
        alike.setdefault((tuple(parts), unknown.get(rank, 0)), []).append(rank)
    largest = max((sum(size for _, size in parts) for parts, _ in alike), default=0) or 1
    scale = (WIDTH - (UNKNOWN_WIDTH if unknown else 0)) / largest
    shown = list(alike.items())[:MOST_BARS]
    drawn = tuple(bar(ranks, parts, scale, most) for (parts, most), ranks in shown)
    names = [name for name, _ in rows[0][1]] if rows else []
    left = len(rows) - sum(len(ranks) for _, ranks in shown)
    return Bars(title, caption, drawn, tuple(zip(names, COLOURS)), left)


def bar(ranks: Sequence[int], parts: Sequence[tuple[str, int]], scale: float, unknown: int = 0) -> Bar:
    """Return a bar from its parts."""
    bar_parts, x = [], 0.0
    whose, each = of_ranks(ranks_text(ranks)), " each" if len(ranks) > 1 else ""
    for (name, size), colour in zip(parts, COLOURS):
        bar_parts.append(
            Part(round(x, 2), round(size * scale, 2), colour, f"{whose}, {name}: {byte_count(size)}{each}")
        )
        x += size * scale
    if unknown:
        title = f"{whose}, stack: {byte_count(unknown)}{each}, how much of it is used is unknown"
        bar_parts.append(Part(round(x, 2), UNKNOWN_WIDTH, HATCHED, title))
    return Bar(whose if len(whose) <= LONGEST_LABEL else f"{len(ranks)} ranks", tuple(bar_parts))


def flame(stacks: dict[int, tuple[Call, ...]], ranks: Sequence[int]) -> Flame:
    """The calls of those ranks, callers above; ranks with the same calls stand side by side."""
    boxes: list[Box] = []
    if stacks:
        ordered = sorted(stacks.items(), key=lambda item: [call.function for call in item[1]])
        place(ordered, 0, 0.0, WIDTH / len(stacks), boxes)
    lacking = [rank for rank in ranks if rank not in stacks]
    caption = "Each box is a call, as wide as the number of ranks in it." if boxes else ""
    if lacking:
        caption += f" Of {of_ranks(ranks_text(lacking))} no stack could be read: `inspector stacks` says why."
    return Flame(caption.strip() or "There are no ranks.", tuple(boxes), max((box.y for box in boxes), default=0) + ROW)


def place(stacks: list[tuple[int, tuple[Call, ...]]], depth: int, x: float, unit: float, boxes: list[Box]) -> None:
    """Add the boxes of stacks from a depth on."""
    pending = [(stacks, depth, x)]
    while pending:
        members, level, left = pending.pop()
        for call, same in groups(members, level):
            width = unit * len(same)
            ranks = compact(sorted(rank for rank, _ in same))
            place = harmless(f" {place_of(call, [calls[level] for _, calls in same])}") if call.file else ""
            name = harmless(call.function)
            label = f"{name}{place}"[: int(width / LETTER)] if width >= SMALLEST_LABEL else ""
            title = f"{name}{' at' if place else ''}{place}, {of_ranks(ranks)}"
            colour = FLAME[level % len(FLAME)]
            boxes.append(Box(round(left, 2), level * ROW, round(width, 2), colour, label, title, f"{name}{place}"))
            pending.append((same, level + 1, left))
            left += width


def place_of(call: Call, same: Iterable[Call]) -> str:
    """`heat.c:41`, with several lines `heat.c:41,44`: where those of one function are."""
    lines = sorted({other.line for other in same if other.line and other.file == call.file})
    numbers = ",".join(map(str, lines[:MOST_LINES])) + (",..." if len(lines) > MOST_LINES else "")
    return call.file.rpartition("/")[2] + (f":{numbers}" if numbers else "")


def groups(
    stacks: list[tuple[int, tuple[Call, ...]]], depth: int
) -> Iterable[tuple[Call, list[tuple[int, tuple[Call, ...]]]]]:
    """The ranks by their call at a depth, in order; those whose stack has ended are left out."""
    by_function: dict[str, list[tuple[int, tuple[Call, ...]]]] = {}
    for stack in stacks:
        if depth < len(stack[1]):
            by_function.setdefault(stack[1][depth].function, []).append(stack)
    return [(same[0][1][depth], same) for same in by_function.values()]
