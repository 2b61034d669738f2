"""What `inspector watch` shows, as rows: ranks, their stacks, the globals that differ, and the payload.

Takes a `Look`; gives rows that can be sorted and filtered, and the lines of one row that is opened. Every text of the
target is made harmless here. It draws nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.debugger.wording import element_text, state_word, waiting_text
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.stacks import call_tree
from pieglobalsfind.stacks.call_tree import Call, Node

from ..analysis.globals import GlobalValues, differing
from ..analysis.payload import CATEGORIES
from ..analysis.poll import Look
from ..analysis.rank_memory import Holding
from ..job.stacks import Stacks, label
from ..terminal.text import byte_count, declared, harmless
from .render import ranks_text, size_text
from .wait_chains import Root, chains

RANKS, STACKS, GLOBALS, PAYLOAD, WAITS = VIEWS = ("ranks", "stacks", "globals", "payload", "waits")
LONGEST_CELL = 200
MOST_VALUES = 50  # of a variable, in its row
UNKNOWN = -1.0  # sorts before every number


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by."""

    text: str
    key: Union[str, float]


@dataclass(frozen=True)
class Row:
    """`name` stays the same from look to look; `rank` is the one that is opened with the row, if it is one's."""

    name: str
    cells: tuple[Cell, ...]
    rank: Optional[int] = None


@dataclass(frozen=True)
class Sheet:
    view: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def text_cell(text: str) -> Cell:
    shown = harmless(text, LONGEST_CELL)
    return Cell(shown, shown)


def number_cell(value: Union[int, float, Absent], wording: Callable[[int], str] = str) -> Cell:
    return Cell("?", UNKNOWN) if isinstance(value, Absent) else Cell(wording(int(value)), float(value))


def sheet(view: str, look: Look, before: Optional[Look]) -> Sheet:
    """The rows of a view; `before` is the last look but one, for what is counted per second."""
    if view == RANKS:
        return ranks_sheet(look, before)
    if view == STACKS:
        return stacks_sheet(look)
    if view == WAITS:
        return waits_sheet(look)
    return globals_sheet(look) if view == GLOBALS else payload_sheet(look)


def arranged(found: Sheet, column: int, down: bool, wanted: str) -> list[Row]:
    """The rows that hold `wanted` in some cell, sorted by a column; equal ones stay in order."""
    lower = wanted.lower()
    rows = [one for one in found.rows if any(lower in cell.text.lower() for cell in one.cells)]
    return sorted(rows, key=lambda one: one.cells[column].key, reverse=down)


# ---- the views ----


def ranks_sheet(look: Look, before: Optional[Look]) -> Sheet:
    columns = ("rank", "state", "waits in", "where", "element", "switches", "per second", "memory")
    earlier = {one.rank.rank: one for one in before.ranks} if before is not None else {}
    passed = look.at - before.at if before is not None else 0.0
    rows = (rank_row(look, one, earlier.get(one.rank.rank), passed) for one in look.ranks)
    return Sheet(RANKS, columns, tuple(rows))


def rank_row(look: Look, one: Holding, earlier: Optional[Holding], passed: float) -> Row:
    rank = one.rank
    cells = (
        number_cell(rank.rank),
        text_cell(state_word(rank)),
        text_cell(waiting_text(rank.waiting) if rank.waiting is not None else "-"),
        text_cell(where(look, rank.rank)),
        Cell(element_text(rank), float(rank.processing_element)),
        number_cell(one.switches),
        number_cell(rate(one, earlier, passed)),
        number_cell(one.total, byte_count),
    )
    return Row(f"rank {rank.rank}", cells, rank.rank)


def rate(one: Holding, earlier: Optional[Holding], passed: float) -> Union[float, Absent]:
    """Switches per second between two looks."""
    if earlier is None or passed <= 0 or isinstance(one.switches, Absent) or isinstance(earlier.switches, Absent):
        return Absent("it was looked at only once")
    return (one.switches - earlier.switches) / passed


def where(look: Look, rank: int) -> str:
    """The innermost call in a file whose source is known, or the innermost one; else why there is none."""
    if isinstance(look.stacks, Absent):
        return look.stacks.reason
    calls = look.stacks.calls.get(rank, ())
    known = [one for one in calls if one.file] or list(calls)
    return label(known[-1]) if known else look.stacks.missing.get(rank, "-")


def stacks_sheet(look: Look) -> Sheet:
    columns = ("call", "count", "ranks")
    if isinstance(look.stacks, Absent):
        reason = (text_cell(look.stacks.reason), number_cell(0), text_cell(""))
        return Sheet(STACKS, columns, (Row("none", reason),))
    tree = list(tree_rows(call_tree.merge(look.stacks.calls.items())))
    rows = [*tree, *missing_rows(look.stacks, len(tree))]
    return Sheet(STACKS, columns, tuple(rows))


def tree_rows(root: Node) -> Iterator[Row]:
    """A row per call; the first column's order is the tree's."""
    for place, (path, indent, node) in enumerate(call_tree.walk(root)):
        call = Cell(indent + harmless(node.label, LONGEST_CELL), float(place))
        cells = (call, number_cell(len(node.ranks)), Cell(ranks_text(node.ranks), float(node.ranks[0])))
        yield Row("/".join(path), cells, node.ranks[0])


def missing_rows(found: Stacks, place: int) -> Iterator[Row]:
    reasons: dict[str, list[int]] = {}
    for rank, reason in found.missing.items():
        reasons.setdefault(reason, []).append(rank)
    for number, (reason, ranks) in enumerate(reasons.items()):
        text = Cell(f"! {harmless(reason, LONGEST_CELL)}", float(place + number))
        cells = (text, number_cell(len(ranks)), Cell(ranks_text(ranks), float(ranks[0])))
        yield Row(f"missing {number}", cells, ranks[0])


def globals_sheet(look: Look) -> Sheet:
    columns = ("variable", "declared", "type", "values", "ranks: value")
    rows = tuple(global_row(number, one) for number, one in enumerate(differing(look.globals)))
    return Sheet(GLOBALS, columns, rows)


def global_row(number: int, one: GlobalValues) -> Row:
    values = "; ".join(f"{ranks_text(group.ranks)}: {group.value}" for group in one.groups[:MOST_VALUES])
    cells = (
        text_cell(one.name),
        text_cell(declared(one.file, one.line)),
        text_cell(one.type),
        number_cell(len(one.groups)),
        text_cell(values),
    )
    return Row(f"{number} {one.object} {one.name}", cells)


def payload_sheet(look: Look) -> Sheet:
    columns = ("rank", "total", *(name.replace("_", " ") for name in CATEGORIES))
    rows = (payload_row(one) for one in look.ranks)
    return Sheet(PAYLOAD, columns, tuple(rows))


def payload_row(one: Holding) -> Row:
    memory = one.memory
    sizes = [None] * len(CATEGORIES) if isinstance(memory, Absent) else [memory[name] for name in CATEGORIES]
    cells = (Cell(size_text(size), UNKNOWN if size is None else float(size)) for size in sizes)
    rank = one.rank.rank
    return Row(f"rank {rank}", (number_cell(rank), number_cell(one.total, byte_count), *cells), rank)


def state_of(root: Root) -> str:
    return f"{root.state or 'unknown'} in {root.call}" if root.call else root.state or "unknown"


def waits_sheet(look: Look) -> Sheet:
    """Deadlocks first, then the ranks that others wait for in the end, then chains; sorted by place in this order."""
    columns = ("order", "ranks", "what", "count")
    found = chains(look.job.table, look.waits)
    lines = [(one.ranks, "deadlock: each waits for the next", len(one.ranks)) for one in look.waits.cycles]
    lines += [(one.ranks, f"{state_of(one)}: others wait for it in the end", one.waiters) for one in found.roots]
    lines += [(one.ranks, one.text.partition(" wait")[2].partition(" ")[2], len(one.ranks)) for one in found.links]
    rows = (
        Row(
            f"{what} {ranks[0]}",
            (number_cell(place), Cell(ranks_text(ranks), float(ranks[0])), text_cell(what), number_cell(count)),
            ranks[0],
        )
        for place, (ranks, what, count) in enumerate(lines)
    )
    return Sheet(WAITS, columns, tuple(rows))


# ---- what is opened ----


def opened(view: str, row: Row, look: Look) -> list[str]:
    """The lines of a row that is opened: all of a rank, or all values of a variable."""
    if view == GLOBALS:
        found = [one for number, one in enumerate(differing(look.globals)) if global_row(number, one).name == row.name]
        return [harmless(line) for one in found for line in variable_lines(one)]
    holding = next((one for one in look.ranks if one.rank.rank == row.rank), None)
    return [] if holding is None else [harmless(line) for line in rank_lines(look, holding)]


def variable_lines(one: GlobalValues) -> Iterator[str]:
    yield f"{one.name}, {one.type}, {one.size} bytes, {one.storage}"
    yield f"{one.file}:{one.line}"
    yield ""
    for group in one.groups:
        yield f"{compact(group.ranks)}: {group.value}"


def rank_lines(look: Look, one: Holding) -> Iterator[str]:
    rank = one.rank
    yield f"rank {rank.rank}, {state_word(rank)}" + (f" in {waiting_text(rank.waiting)}" if rank.waiting else "")
    yield f"element {element_text(rank)}, switched to {number_cell(one.switches).text} times"
    yield from one.unknown
    yield ""
    yield from stack_lines(look.stacks, rank.rank)
    yield ""
    yield "globals that differ"
    for found in differing(look.globals):
        yield from (f"  {found.name} = {group.value}" for group in found.groups if rank.rank in group.ranks)
    if not isinstance(one.memory, Absent):
        yield ""
        yield "memory"
        yield from (f"  {name.replace('_', ' ')} {size_text(size)}" for name, size in one.memory.items() if size != 0)


def stack_lines(found: Union[Stacks, Absent], rank: int) -> Iterator[str]:
    if isinstance(found, Absent):
        yield found.reason
        return
    calls: Sequence[Call] = found.calls.get(rank, ())
    yield from (f"#{level:<2} {label(call)}" for level, call in enumerate(reversed(calls)))
    if rank in found.missing:
        yield found.missing[rank]
