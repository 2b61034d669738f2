"""How a command is declared once for every debugger, what it may ask of one, and what it yields.

A command takes a `Debugger` (a debugger that shows a target) and the text of its arguments, and yields blocks. It never
prints, never formats for a terminal, and never knows which debugger it runs in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Protocol, Union

from pieglobalsfind.model import Absent
from pieglobalsfind.target import Target

if TYPE_CHECKING:
    from pieglobalsfind.session.job_view import JobView
    from pieglobalsfind.session.process_view import ProcessView
    from pieglobalsfind.stacks.frame import Backtrace, Frame


@dataclass(frozen=True)
class TextBlock:
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


Block = Union[TextBlock, Table, Finding]


@dataclass(frozen=True)
class ExpressionValue:
    """What an expression gave: `text` as the debugger prints it, `address` of its lvalue (None: it is none)."""

    text: str
    address: Optional[int]


class Debugger(Protocol):
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

    def moment(self) -> ProcessView:
        """The process that the user looks at, as of now; raises `NotVirtualizedError` if it has no ranks."""

    def job(self) -> JobView:
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

    def evaluate(self, rank: int, expression: str, form: str = "") -> Union[ExpressionValue, Absent]:
        """An expression in a rank; `form` is a format such as "/x". Absent: the debugger's own refusal."""

    def values(
        self, numbers: Sequence[int], expression: str, form: str = ""
    ) -> Mapping[int, Union[ExpressionValue, Absent]]:
        """What `evaluate` gives in some of the ranks, by number: where the debugger can tell it without going there."""

    def value_at(self, rank: int, expression: str, address: int, form: str = "") -> Union[ExpressionValue, Absent]:
        """What lies at an address, as a value of the type that an expression has in a rank."""

    def address(self, expression: str) -> int:
        """The address that an expression means where the user stands; an lvalue of no pointer type means its own."""

    def counted(self, numbers: Sequence[int]) -> Iterator[int]:
        """The numbers of the ranks that a command goes through, one by one; tells the user how far it has come."""

    def execute(self, rank: int, command: str) -> str:
        """The output of one of the debugger's commands with the rank selected."""

    def location(self, rank: int) -> str:
        """The innermost user function of a rank, "" if there is none."""


Run = Callable[[Debugger, str], Iterator[Block]]


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
