"""The graph of waiting ranks as a picture: for Graphviz, and as boxes and arrows of an HTML report.

Takes chains; gives text for `dot`, or places. A box is a rank where they are few, else ranks whose waits have one form.
Roots and cycles stand left, and a rank that waits stands right of what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pieglobalsfind.model import RankTable

from ..analysis.wait_graph import Waits
from ..terminal.text import harmless, of_ranks
from .table_cells import ranks_text
from .wait_chains import Chains

MOST_SINGLE = 24  # ranks that have a box each
MOST_COLUMNS = 5  # that single ranks may take: a long chain is read as one box
MOST_BOXES = 60  # that are drawn in a report
CYCLE, ROOT, WAITS = "cycle", "root", "waits"
COLOURS = {CYCLE: "#e45756", ROOT: "#f2cf5b", WAITS: "#9ecae9"}
BOX_WIDTH, BOX_HEIGHT, ACROSS, DOWN = 150, 34, 230, 48  # in units of the picture; the last two from box to box
LABEL_WIDTH = 26


@dataclass(frozen=True)
class WaitNode:
    """`ranks` do the same; `text` says what, `level` is how many arrows lead to a root at least."""

    ranks: tuple[int, ...]
    kind: str
    text: str
    level: int

    @property
    def label(self) -> str:
        """Return the node's ranks as text."""
        return of_ranks(ranks_text(self.ranks))


@dataclass(frozen=True)
class Edge:
    """The ranks of node `start` wait for those of node `end`; `text` says by which rule where they are many."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class WaitPicture:
    """Nodes and edges of the wait graph, with their places."""

    nodes: tuple[WaitNode, ...]
    edges: tuple[Edge, ...]


def picture(table: RankTable, waits: Waits, chains: Chains) -> WaitPicture:
    """The boxes and arrows, those of every cycle too; none if no rank waits for one that is known."""
    longest = max((link.depth for link in chains.links), default=0)
    is_few = len(waits.peers) <= MOST_SINGLE and longest <= MOST_COLUMNS
    parts = _single_parts(waits) if is_few else _grouped_parts(waits, chains)
    home = {rank: number for number, (ranks, _) in enumerate(parts) for rank in ranks}
    rules: dict[tuple[int, int], str] = {}
    for link in chains.links:
        for rank in link.ranks:
            rule = f"r{link.distance:+d}" if link.peer is None and not is_few else ""
            rules[home[rank], home[link.peer_of(rank)]] = rule
    for ring in (cycle.ranks for cycle in waits.cycles):  # some wait through a call that needs something of all
        for rank, following in zip(ring, (*ring[1:], ring[0])):
            rules.setdefault((home[rank], home[following]), "")
    levels = _levels(len(parts), rules, [number for number, (_, kind) in enumerate(parts) if kind != WAITS])
    texts = _texts(table)
    nodes = tuple(WaitNode(ranks, kind, texts.get(ranks[0], ""), level) for (ranks, kind), level in zip(parts, levels))
    return WaitPicture(nodes, tuple(Edge(start, end, rule) for (start, end), rule in sorted(rules.items())))


def _single_parts(waits: Waits) -> list[tuple[tuple[int, ...], str]]:
    cycle = {rank for cycle in waits.cycles for rank in cycle.ranks}
    ranks = sorted(waits.peers.keys() | waits.peers.values() | cycle)
    kinds = {rank: CYCLE if rank in cycle else WAITS if rank in waits.peers else ROOT for rank in ranks}
    return [((rank,), kinds[rank]) for rank in ranks]


def _grouped_parts(waits: Waits, chains: Chains) -> list[tuple[tuple[int, ...], str]]:
    """Links and roots; a rank that waits for no single one, and stands for itself, is the root that it is."""
    parts = [(link.ranks, CYCLE if link.is_cycle else WAITS) for link in chains.links]
    linked = {rank for ranks, _ in parts for rank in ranks}
    cycle = {rank for cycle in waits.cycles for rank in cycle.ranks} - linked
    parts += [((rank,), CYCLE) for rank in sorted(cycle)]
    roots = [tuple(rank for rank in root.ranks if rank not in cycle) for root in chains.roots]
    parts += [(ranks, ROOT) for ranks in roots if ranks]
    drawn = {rank for ranks, _ in parts for rank in ranks}
    return parts + [((peer,), ROOT) for peer in sorted(set(waits.peers.values()) - drawn)]


def _levels(count: int, edges: Mapping[tuple[int, int], str], roots: Sequence[int]) -> list[int]:
    """Of each node, the fewest arrows to a root or a cycle; 0 where none leads there."""
    before: dict[int, list[int]] = {}
    for start, end in edges:
        before.setdefault(end, []).append(start)
    levels = dict.fromkeys(roots, 0)
    now = list(roots)
    while now:
        later = [start for end in now for start in before.get(end, ()) if start not in levels]
        levels.update((start, levels[end] + 1) for end in now for start in before.get(end, ()) if start not in levels)
        now = list(dict.fromkeys(later))
    return [levels.get(number, 0) for number in range(count)]


def _texts(table: RankTable) -> dict[int, str]:
    return {rank.rank: harmless(rank.waiting.call) if rank.waiting else rank.state for rank in table.ranks}


# ---- Graphviz ----


def as_dot(wait_picture: WaitPicture) -> Iterator[str]:
    """Lines of a file for `dot -Tsvg`."""
    yield "digraph waits {"
    yield '  rankdir=RL; node [shape=box, style="rounded,filled", fontname="sans-serif"];'
    for number, node in enumerate(wait_picture.nodes):
        label = f"{_quoted(node.label)}\\n{_quoted(node.text)}"
        yield f'  n{number} [label="{label}", fillcolor="{COLOURS[node.kind]}"];'
    for edge in wait_picture.edges:
        label = f' [label="{_quoted(edge.text)}"]' if edge.text else ""
        yield f"  n{edge.start} -> n{edge.end}{label};"
    yield "}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


# ---- the report's own picture ----


@dataclass(frozen=True)
class PlacedNode:
    """A node with the place of its upper left corner."""

    x: int
    y: int
    colour: str
    label: str
    text: str
    title: str


@dataclass(frozen=True)
class Arrow:
    """`path` as SVG has it (SVG 2, 9.3)."""

    path: str
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class WaitDrawing:
    """`left` is how many boxes there is no room for."""

    boxes: tuple[PlacedNode, ...]
    arrows: tuple[Arrow, ...]
    width: int
    height: int
    left: int


def drawing(wait_picture: WaitPicture) -> WaitDrawing:
    """Boxes in columns by level, from left to right."""
    rows: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    for node in wait_picture.nodes[:MOST_BOXES]:
        row = rows[node.level] = rows.get(node.level, -1) + 1
        places.append((10 + ACROSS * node.level, 10 + DOWN * row))
    boxes = tuple(
        PlacedNode(x, y, COLOURS[node.kind], _cut(node.label), _cut(node.text), f"{node.label}: {node.text}")
        for (x, y), node in zip(places, wait_picture.nodes)
    )
    drawn = [edge for edge in wait_picture.edges if edge.start < len(places) and edge.end < len(places)]
    first = {(edge.start, edge.text): edge for edge in reversed(drawn)}  # equal texts at one box are written once
    arrows = tuple(
        _arrow(places[edge.start], places[edge.end], edge.text if first[edge.start, edge.text] is edge else "")
        for edge in drawn
    )
    width = max((x for x, _ in places), default=0) + BOX_WIDTH + 70
    height = max((y for _, y in places), default=0) + BOX_HEIGHT + 10
    return WaitDrawing(boxes, arrows, width, height, len(wait_picture.nodes) - len(boxes))


def _cut(text: str) -> str:
    most = BOX_WIDTH // 7
    return text if len(text) <= most else text[: most - 3] + "..."


def _arrow(start: tuple[int, int], end: tuple[int, int], text: str) -> Arrow:
    """To the left from column to column; within a column, or to itself, around the right side."""
    (x1, y1), (x2, y2) = (start[0], start[1] + BOX_HEIGHT // 2), (end[0] + BOX_WIDTH, end[1] + BOX_HEIGHT // 2)
    if start[0] > end[0]:
        middle = (x1 + x2) / 2
        beside = x1 - LABEL_WIDTH  # where the arrow begins: arrows from other boxes are elsewhere there
        return Arrow(f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}", text, beside, y1 - 4)
    right, y1, y2 = start[0] + BOX_WIDTH, y1 - 6, y2 + 6
    out = max(right, x2) + 35
    return Arrow(f"M{right} {y1} C{out} {y1} {out} {y2} {x2} {y2}", text, out - 8, (y1 + y2) / 2 - 4)
