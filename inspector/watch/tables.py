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

from ..analysis.global_values import GlobalValues, differing
from ..analysis.payload import CATEGORIES
from ..analysis.rank_memory import Holding
from ..job.read_stacks import Stacks, label
from ..load.loads import between
from ..output.load_tables import RANK_COLUMNS, RankCells
from ..output.table_cells import ranks_text, size_text
from ..output.wait_chains import ChainRoot, chains
from ..terminal.text import byte_count, declared, harmless
from .lookout import Look

RANKS, STACKS, GLOBALS, PAYLOAD, WAITS, LOAD = VIEWS = ("ranks", "stacks", "globals", "payload", "waits", "load")
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
class WatchTable:
    """One of watch's tables."""

    view: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def _text_cell(text: str) -> Cell:
    shown = harmless(text, LONGEST_CELL)
    return Cell(shown, shown)


def _number_cell(value: Union[int, float, Absent], wording: Callable[[int], str] = str) -> Cell:
    return Cell("?", UNKNOWN) if isinstance(value, Absent) else Cell(wording(int(value)), float(value))


def sheet(view: str, look: Look, before: Optional[Look]) -> WatchTable:
    """The rows of a view; `before` is the last look but one, for what is counted per second."""
    if view == RANKS:
        return ranks_sheet(look, before)
    if view == STACKS:
        return _stacks_sheet(look)
    if view == WAITS:
        return waits_sheet(look)
    if view == LOAD:
        return load_sheet(look, before)
    return globals_sheet(look) if view == GLOBALS else _payload_sheet(look)


def arranged(watch_table: WatchTable, column: int, down: bool, wanted: str) -> list[Row]:
    """The rows that hold `wanted` in some cell, sorted by a column; equal ones stay in order."""
    lower = wanted.lower()
    rows = [row for row in watch_table.rows if any(lower in cell.text.lower() for cell in row.cells)]
    return sorted(rows, key=lambda row: row.cells[column].key, reverse=down)


# ---- the views ----


def ranks_sheet(look: Look, before: Optional[Look]) -> WatchTable:
    """Return the table of ranks."""
    columns = ("rank", "state", "waits in", "where", "element", "switches", "per second", "memory")
    earlier = {rank.rank.rank: rank for rank in before.ranks} if before is not None else {}
    passed = look.at - before.at if before is not None else 0.0
    rows = (rank_row(look, rank, earlier.get(rank.rank.rank), passed) for rank in look.ranks)
    return WatchTable(RANKS, columns, tuple(rows))


def rank_row(look: Look, holding: Holding, earlier: Optional[Holding], passed: float) -> Row:
    """Return a rank's row."""
    rank = holding.rank
    cells = (
        _number_cell(rank.rank),
        _text_cell(state_word(rank)),
        _text_cell(waiting_text(rank.waiting) if rank.waiting is not None else "-"),
        _text_cell(where(look, rank.rank)),
        Cell(element_text(rank), float(rank.processing_element)),
        _number_cell(holding.switches),
        _number_cell(rate(holding, earlier, passed)),
        _number_cell(holding.total, byte_count),
    )
    return Row(f"rank {rank.rank}", cells, rank.rank)


def rate(holding: Holding, earlier: Optional[Holding], passed: float) -> Union[float, Absent]:
    """Switches per second between two looks."""
    if earlier is None or passed <= 0 or isinstance(holding.switches, Absent) or isinstance(earlier.switches, Absent):
        return Absent("it was looked at only once")
    return (holding.switches - earlier.switches) / passed


def where(look: Look, rank: int) -> str:
    """The innermost call in a file whose source is known, or the innermost one; else why there is none."""
    if isinstance(look.stacks, Absent):
        return look.stacks.reason
    calls = look.stacks.calls.get(rank, ())
    candidates = [call for call in calls if call.file] or list(calls)
    return label(candidates[-1]) if candidates else look.stacks.missing.get(rank, "-")


def _stacks_sheet(look: Look) -> WatchTable:
    columns = ("call", "count", "ranks")
    if isinstance(look.stacks, Absent):
        reason = (_text_cell(look.stacks.reason), _number_cell(0), _text_cell(""))
        return WatchTable(STACKS, columns, (Row("none", reason),))
    tree = list(tree_rows(call_tree.merge(look.stacks.calls.items())))
    rows = [*tree, *_missing_rows(look.stacks, len(tree))]
    return WatchTable(STACKS, columns, tuple(rows))


def tree_rows(root: Node) -> Iterator[Row]:
    """A row per call; the first column's order is the tree's."""
    for place, (path, indent, node) in enumerate(call_tree.walk(root)):
        call = Cell(indent + harmless(node.label, LONGEST_CELL), float(place))
        cells = (call, _number_cell(len(node.ranks)), Cell(ranks_text(node.ranks), float(node.ranks[0])))
        yield Row("/".join(path), cells, node.ranks[0])


def _missing_rows(stacks: Stacks, place: int) -> Iterator[Row]:
    reasons: dict[str, list[int]] = {}
    for rank, reason in stacks.missing.items():
        reasons.setdefault(reason, []).append(rank)
    for number, (reason, ranks) in enumerate(reasons.items()):
        text = Cell(f"! {harmless(reason, LONGEST_CELL)}", float(place + number))
        cells = (text, _number_cell(len(ranks)), Cell(ranks_text(ranks), float(ranks[0])))
        yield Row(f"missing {number}", cells, ranks[0])


def globals_sheet(look: Look) -> WatchTable:
    """Return the table of globals that differ."""
    columns = ("variable", "declared", "type", "values", "ranks: value")
    rows = tuple(_global_row(number, global_values) for number, global_values in enumerate(differing(look.globals)))
    return WatchTable(GLOBALS, columns, rows)


def _global_row(number: int, global_values: GlobalValues) -> Row:
    values = "; ".join(f"{ranks_text(group.ranks)}: {group.value}" for group in global_values.groups[:MOST_VALUES])
    cells = (
        _text_cell(global_values.name),
        _text_cell(declared(global_values.file, global_values.line)),
        _text_cell(global_values.type),
        _number_cell(len(global_values.groups)),
        _text_cell(values),
    )
    return Row(f"{number} {global_values.object} {global_values.name}", cells)


def _payload_sheet(look: Look) -> WatchTable:
    columns = ("rank", "total", *(name.replace("_", " ") for name in CATEGORIES))
    rows = (payload_row(rank) for rank in look.ranks)
    return WatchTable(PAYLOAD, columns, tuple(rows))


def payload_row(holding: Holding) -> Row:
    """Return a rank's row of bytes."""
    memory = holding.memory
    sizes = [None] * len(CATEGORIES) if isinstance(memory, Absent) else [memory[name] for name in CATEGORIES]
    cells = (Cell(size_text(size), UNKNOWN if size is None else float(size)) for size in sizes)
    rank = holding.rank.rank
    return Row(f"rank {rank}", (_number_cell(rank), _number_cell(holding.total, byte_count), *cells), rank)


def state_of(root: ChainRoot) -> str:
    """Return what a root's ranks do."""
    return f"{root.state or 'unknown'} in {root.call}" if root.call else root.state or "unknown"


def waits_sheet(look: Look) -> WatchTable:
    """Deadlocks first, then the ranks that others wait for in the end, then chains; sorted by place in this order."""
    columns = ("order", "ranks", "what", "count")
    wait_chains = chains(look.job.table, look.waits)
    lines = [(cycle.ranks, "deadlock: each waits for the next", len(cycle.ranks)) for cycle in look.waits.cycles]
    lines += [
        (root.ranks, f"{state_of(root)}: others wait for it in the end", root.waiters) for root in wait_chains.roots
    ]
    lines += [
        (link.ranks, link.text.partition(" wait")[2].partition(" ")[2], len(link.ranks)) for link in wait_chains.links
    ]
    rows = (
        Row(
            f"{what} {ranks[0]}",
            (_number_cell(place), Cell(ranks_text(ranks), float(ranks[0])), _text_cell(what), _number_cell(count)),
            ranks[0],
        )
        for place, (ranks, what, count) in enumerate(lines)
    )
    return WatchTable(WAITS, columns, tuple(rows))


def load_sheet(look: Look, before: Optional[Look]) -> WatchTable:
    """How long ranks ran, and what they sent, since the look before, or since they began."""
    loads = look.load
    if isinstance(loads, Absent):
        return WatchTable(
            LOAD, RANK_COLUMNS[:1], (Row("none", (_text_cell(f"{loads.reason}; `inspector load` takes samples"),)),)
        )
    if before is not None and not isinstance(before.load, Absent):
        loads = between(before.load, loads, look.at - before.at)
    cells = RankCells(loads)
    rows = (
        Row(f"rank {rank.rank}", tuple(map(Cell, cells.of(rank), cells.keys(rank))), rank.rank) for rank in loads.ranks
    )
    return WatchTable(LOAD, RANK_COLUMNS, tuple(rows))


# ---- what is opened ----


def opened(view: str, row: Row, look: Look) -> list[str]:
    """The lines of a row that is opened: all of a rank, or all values of a variable."""
    if view == GLOBALS:
        return [
            harmless(line)
            for number, global_values in enumerate(differing(look.globals))
            if _global_row(number, global_values).name == row.name
            for line in _variable_lines(global_values)
        ]
    holding = next((rank for rank in look.ranks if rank.rank.rank == row.rank), None)
    return [] if holding is None else [harmless(line) for line in _rank_lines(look, holding)]


def _variable_lines(global_values: GlobalValues) -> Iterator[str]:
    yield f"{global_values.name}, {global_values.type}, {global_values.size} bytes, {global_values.storage}"
    yield f"{global_values.file}:{global_values.line}"
    yield ""
    for group in global_values.groups:
        yield f"{compact(group.ranks)}: {group.value}"


def _rank_lines(look: Look, holding: Holding) -> Iterator[str]:
    rank = holding.rank
    yield f"rank {rank.rank}, {state_word(rank)}" + (f" in {waiting_text(rank.waiting)}" if rank.waiting else "")
    yield f"element {element_text(rank)}, switched to {_number_cell(holding.switches).text} times"
    yield from holding.unknown
    yield ""
    yield from _stack_lines(look.stacks, rank.rank)
    yield ""
    yield "globals that differ"
    for global_values in differing(look.globals):
        yield from (
            f"  {global_values.name} = {group.value}" for group in global_values.groups if rank.rank in group.ranks
        )
    if not isinstance(holding.memory, Absent):
        yield ""
        yield "memory"
        yield from (
            f"  {name.replace('_', ' ')} {size_text(size)}" for name, size in holding.memory.items() if size != 0
        )


def _stack_lines(stacks: Union[Stacks, Absent], rank: int) -> Iterator[str]:
    if isinstance(stacks, Absent):
        yield stacks.reason
        return
    calls: Sequence[Call] = stacks.calls.get(rank, ())
    yield from (f"#{level:<2} {label(call)}" for level, call in enumerate(reversed(calls)))
    if rank in stacks.missing:
        yield stacks.missing[rank]
