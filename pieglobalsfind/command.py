"""How a command is declared once for every debugger, what it may ask of one, and what it yields.

A command takes a `Face` (a debugger that shows a target) and the text of its arguments, and yields blocks. It never
prints, never formats for a terminal, and never knows which debugger it runs in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Optional, Protocol, Union

from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.facts import dataclass, replace
from pieglobalsfind.model import Absent, Rank, RankTable
from pieglobalsfind.ranks import columns_of
from pieglobalsfind.rankset import EVERY, FunctionOf, InState, RankSet, no_such_rank, select
from pieglobalsfind.target import MemoryMapping, Target
from pieglobalsfind.translate import Translator
from pieglobalsfind.unwind import Contexts

if TYPE_CHECKING:
    from pieglobalsfind.job_moment import JobMoment
    from pieglobalsfind.stack_walk import Walker
    from pieglobalsfind.suspended import Backtrace
    from pieglobalsfind.symbolize import Symbolizer


@dataclass(frozen=True)
class Text:
    """One or more lines as they are."""

    text: str


@dataclass(frozen=True)
class Column:
    """`numeric` columns are aligned to the right; only `flexible` ones may be shortened to fit."""

    title: str
    numeric: bool = False
    flexible: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of plain text, each as long as `columns`."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Finding:
    """Something that the user must not overlook, and what to do about it."""

    sentence: str
    hint: str = ""


Block = Union[Text, Table, Finding]


@dataclass(frozen=True)
class Value:
    """What an expression gave: `text` as the debugger prints it, `address` of its lvalue (None: it is none)."""

    text: str
    address: Optional[int]


@dataclass(frozen=True)
class Frame:
    """One frame of a rank's stack. `level` is the number by which the debugger selects it.

    `arguments` (`n=4, grid=...`) and `variables` (lines `name = value`, the innermost block's first, if they were
    asked for) are the debugger's own text. `library` is where a function without line information comes from.
    """

    level: int
    pc: int
    shows_pc: bool
    function: str
    arguments: str
    file: str = ""
    line: int = 0
    library: str = ""
    variables: str = ""


@dataclass(frozen=True)
class Moment:
    """The target between two stops: one rank table serves every command until the target runs again."""

    target: Target
    table: RankTable

    @cached_property
    def translator(self) -> Translator:
        return Translator(self.table, self._maps)

    @cached_property
    def symbolizer(self) -> Symbolizer:
        from pieglobalsfind.symbolize import Symbolizer  # late: it takes longer to import than all the rest

        return Symbolizer(self.target, self.table)

    @cached_property
    def contexts(self) -> Contexts:
        return Contexts(self.target, self.table, self._maps)

    @cached_property
    def _maps(self) -> Sequence[MemoryMapping]:
        return self.target.maps()

    @cached_property
    def walker(self) -> Walker:
        """Raises `ObjectFileError` where elfutils' libdw is missing."""
        from pieglobalsfind.dwarf_libdw import library
        from pieglobalsfind.stack_walk import Walker

        library()
        return Walker(self.target, self.table, self.translator, self.contexts, self.symbolizer)

    @cached_property
    def _indices(self) -> dict[int, int]:
        return {number: index for index, number in enumerate(columns_of(self.table.ranks).numbers)}

    def rank(self, number: int) -> Rank:
        """The facts about a rank; raises `UsageError` if this process does not have it."""
        index = self._indices.get(number)
        if index is None:
            raise no_such_rank(number, self.table)
        return self.table.ranks[index]

    def shown(self, number: int) -> Rank:
        """A rank as users see it: blocked if it is in an MPI call, also where its runtime does not publish that."""
        from pieglobalsfind.blocked import TIERS, as_blocked

        rank = self.rank(number)
        if rank.evidence.tier not in TIERS:
            return rank
        try:
            return as_blocked(self.walker, rank)
        except ObjectFileError:  # nobody can walk stacks here
            return rank

    def select(self, chosen: RankSet, function_of: FunctionOf) -> tuple[int, ...]:
        """The ranks that a set means, ascending, by the states that users see; raises `UsageError`."""
        return select(chosen, as_shown(chosen, self.table, self.shown), function_of)


def as_shown(chosen: RankSet, table: RankTable, shown: Callable[[int], Rank]) -> RankTable:
    """The table with the states that users see, if the set asks for states."""
    if not any(isinstance(one, InState) and one.state != EVERY for one in chosen):
        return table
    return replace(table, ranks=tuple(shown(one.rank) for one in table.ranks))


class Face(Protocol):
    """What a debugger gives to a command. Every method may raise `RanklensError`.

    "In a rank" means: in its nearest user frame (the innermost one in the program's own copy), with the rank's own
    globals; what the user has selected is as before afterwards.
    """

    @property
    def width(self) -> int:
        """Columns of the user's screen; 0: unlimited."""

    @property
    def folds_runtime(self) -> bool:
        """Whether the user wants the runtime's own frames left out of backtraces."""

    def moment(self) -> Moment:
        """The process that the user looks at, as of now; raises `NotVirtualizedError` if it has no ranks."""

    def job(self) -> JobMoment:
        """All processes of its job that the debugger has; raises `NotVirtualizedError` if they have no ranks."""

    def target(self) -> Target:
        """The target as of now, with or without ranks."""

    def enter(self, registers: Optional[Mapping[int, int]], reason: str) -> Backtrace:
        """The stack that goes on from saved registers; the debugger's own commands mean it then, where they can.

        None: they mean the thread's own again. `reason` follows "because".
        """

    @property
    def selected(self) -> Optional[int]:
        """The rank that the debugger's own commands mean, or None."""

    @property
    def reason(self) -> str:
        """Why that rank (or none) is selected, to follow "because"."""

    @property
    def without_rank(self) -> str:
        """What frames and names mean as long as no rank is selected."""

    def select(self, rank: Optional[int]) -> None:
        """Make the debugger's own commands mean this rank, or none."""

    def frames(self, rank: int, limit: int = 0, variables: bool = False) -> Iterator[Frame]:
        """The rank's stack, innermost first, ending at the rank's entry; `limit` 0: all of it."""

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[Value, Absent]:
        """An expression in a rank; `form` is a format such as "/x". Absent: the debugger's own refusal."""

    def address(self, expression: str) -> int:
        """The address that an expression means where the user stands; an lvalue of no pointer type means its own."""

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        """The numbers of the ranks that a command goes through, one by one; tells the user how far it has come."""

    def execute(self, rank: int, command: str) -> str:
        """The output of one of the debugger's commands with the rank selected."""

    def location(self, rank: int) -> str:
        """The innermost user function of a rank, "" if there is none."""


Run = Callable[[Face, str], Iterator[Block]]


@dataclass(frozen=True)
class Command:
    """A command as users see it. `completes` says what its arguments are: "ranks", "expression", "command" or "".

    `name` has its words separated by one space; `summary` is one line, `description` the rest of the help.
    """

    name: str
    arguments: str
    summary: str
    description: str
    run: Run
    completes: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def help(self) -> str:
        """The whole help, the way debuggers show it: summary, usage, description."""
        usage = f"Usage: {self.name} {self.arguments}".rstrip()
        return "\n".join(part for part in (self.summary, usage, self.description) if part)
