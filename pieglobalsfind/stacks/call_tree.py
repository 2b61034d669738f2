"""Many ranks' stacks merged into one call tree, each call with the ranks that are in it (as STAT made it known).

Takes stacks as calls, outermost first; gives a tree whose size is that of its distinct content. Calls of one function
from one caller are one node, at however many lines they are. It knows nothing of targets and debuggers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Optional

from pieglobalsfind.ranks.rankset import compact

BRANCH, LAST, BAR, BLANK = "|-- ", "`-- ", "|   ", "    "
CXX_HEADERS = "/include/c++/"  # of libstdc++ and libc++, whose templates the compiler makes functions of the program of
MOST_LINES = 4  # line numbers that are shown of one node


@dataclass(frozen=True)
class Call:
    """One frame: the function, and where in it the rank is. `file` is "" and `line` 0 where that is unknown.

    `library` is the program or library that holds the function.
    """

    function: str
    file: str = ""
    line: int = 0
    library: str = ""


def own_call(calls: Iterable[Call]) -> Optional[Call]:
    """The first of calls that the user has written; None if all are of the C++ library's templates."""
    return next((call for call in calls if CXX_HEADERS not in call.file), None)


@dataclass
class Node:
    """A function in one place of the tree: `ranks` that are in it, `lines` at which they are."""

    function: str
    file: str = ""
    library: str = ""
    ranks: list[int] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    children: dict[tuple[str, str], Node] = field(default_factory=dict)

    def add(self, rank: int, stack: Sequence[Call]) -> None:
        """Enter a rank's stack below this node, outermost call first."""
        self.add_all((rank,), stack)

    def add_all(self, ranks: Iterable[int], stack: Sequence[Call]) -> None:
        """Likewise, of all ranks that are in this one stack."""
        node = self
        node.ranks.extend(ranks)
        for call in stack:
            key = (call.function, call.file or call.library)
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = Node(call.function, call.file, call.library)
            child.ranks.extend(ranks)
            if call.line:
                child.lines.add(call.line)
            node = child

    @property
    def label(self) -> str:
        """`exchange at solver.c:165`; with several lines `relax at solver.c:176,179`."""
        place = ""
        if self.file:
            shown = sorted(self.lines)
            numbers = ",".join(map(str, shown[:MOST_LINES])) + (",..." if len(shown) > MOST_LINES else "")
            place = f" at {self.file.rpartition('/')[2]}" + (f":{numbers}" if numbers else "")
        elif self.library:
            place = f" from {self.library.rpartition('/')[2]}"
        return f"{self.function}{place}"


def merge(stacks: Iterable[tuple[int, Sequence[Call]]]) -> Node:
    """All ranks' stacks (rank, calls outermost first) below one root without a name."""
    root = Node("")
    for rank, stack in stacks:
        root.add(rank, stack)
    return root


def lines(root: Node) -> Iterator[str]:
    """The tree as text: one line per node, most ranks first, each with its set of ranks."""
    for _, indent, node in walk(root):
        yield f"{indent}{node.label}  [{compact(node.ranks)}]"


def walk(root: Node) -> Iterator[tuple[tuple[str, ...], str, Node]]:
    """Each node in the order of `lines`: the functions down to it, the branches drawn before it, and the node."""
    yield from _below(root, (), "")


def _below(node: Node, path: tuple[str, ...], indent: str) -> Iterator[tuple[tuple[str, ...], str, Node]]:
    children = sorted(node.children.values(), key=lambda child: (-len(child.ranks), min(child.ranks)))
    for number, child in enumerate(children):
        last = number == len(children) - 1
        alone = last and number == 0 and len(child.ranks) == len(node.ranks)
        # A chain of calls that all ranks share goes straight down.
        inner = (*path, child.function, child.file or child.library)
        yield inner, indent + ("" if alone else LAST if last else BRANCH), child
        yield from _below(child, inner, indent if alone else indent + (BLANK if last else BAR))
