"""What a debugger is asked, and what it answered: the two values that cross into and out of a debugger's process.

Takes and gives plain files, so that GDB's and LLDB's own Python can read them (standard library only).
Never runs anything and knows no debugger.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

PLAN_VARIABLE = "RANKLENS_TEST_PLAN"
"""Environment variable that names the plan's file in the debugger's process."""


STEP = "step "
"""How the "frame" of a query begins that is one step of a walk."""


@dataclass(frozen=True)
class Query:
    """One debugger command, asked in the newest frame of function `frame` (where the debugger stands when empty)."""

    frame: str
    command: str

    def __str__(self) -> str:
        return f"{self.frame}: {self.command}" if self.frame else self.command


def walk(*commands: str) -> tuple[Query, ...]:
    """Commands that make the process go on, asked one after the other; the same one may come again."""
    return tuple(Query(f"{STEP}{number}", command) for number, command in enumerate(commands))


def at(frame: str, *commands: str) -> tuple[Query, ...]:
    """Queries of `commands`, each in the newest frame of function `frame`."""
    return tuple(Query(frame, command) for command in commands)


@dataclass(frozen=True)
class Plan:
    """A debugger's whole work: bring the target to its stopping place, then ask every rank every query.

    Without `ranks` the process is one rank of its own, whose number is in its environment.  The controller sets the
    rest: `answers` is the folder that takes one file per rank; `meeting`, if any, an abstract Unix socket where the
    debugger reports when it has answered and stays until it closes, because an MPI process that ended early would take
    the others with it. `walk` is for rank `walker` alone, which runs.
    """

    prepare: tuple[str, ...]
    queries: tuple[Query, ...]
    ranks: tuple[int, ...] = ()
    answers: str = ""
    meeting: str = ""
    walk: tuple[Query, ...] = ()
    walker: int = -1

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(path: Path) -> Plan:
        fields = json.loads(path.read_text())
        return Plan(
            prepare=tuple(fields["prepare"]),
            queries=tuple(Query(**query) for query in fields["queries"]),
            ranks=tuple(fields["ranks"]),
            answers=fields["answers"],
            meeting=fields["meeting"],
            walk=tuple(Query(**query) for query in fields["walk"]),
            walker=fields["walker"],
        )


@dataclass(frozen=True)
class Answer:
    """What the debugger printed for a query about a rank; what it said instead when it refused."""

    rank: int
    query: Query
    text: str


class Answers:
    """The answers of all ranks."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._texts = {(answer.rank, answer.query): answer.text for answer in answers}

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(rank for rank, _ in self._texts)

    def text(self, rank: int, query: Query) -> str:
        """The answer to a query; KeyError when it was never asked."""
        return self._texts[rank, query]

    @staticmethod
    def load(directory: Path) -> Answers:
        """Read what `save_answers` wrote."""
        rows = (row for path in sorted(directory.glob("*.json")) for row in json.loads(path.read_text()))
        return Answers(Answer(row["rank"], Query(**row["query"]), row["text"]) for row in rows)


def save_answers(directory: Path, rank: int, answers: Iterable[Answer]) -> None:
    """Write one rank's answers to a file of its own; the file is whole from the moment it is there."""
    whole = directory / f"{rank}.json"
    partial = whole.with_suffix(".partial")
    partial.write_text(json.dumps([asdict(answer) for answer in answers]))
    partial.replace(whole)
