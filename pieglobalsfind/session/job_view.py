"""A job's processes as a debugger has them between two stops: which one has which rank.

Takes their moments; answers by rank number, which is the same in all of them. What a debugger has of a job is one
process, as a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Optional

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import MIGRATED_OUT, Object, Rank, RankTable
from pieglobalsfind.ranks.rankset import FunctionOf, RankSet, no_such_rank, select
from pieglobalsfind.session.process_view import ProcessView, as_shown


@dataclass(frozen=True)
class ViewedProcess:
    """One process of the job. `name` is the debugger's for it, `pid` 0 where it has none."""

    moment: ProcessView
    name: str = ""
    pid: int = 0

    def claim(self, rank: Rank) -> tuple[int, bool, bool, bool]:
        """Of several processes that know a rank the one with the greatest claim has it.

        Its record has seen more moves; the rank is there; its pages are read there; the record is the process's own,
        and not what a fork has left.
        """
        own = not self.pid or self.moment.table.process_id == self.pid
        return rank.moves, rank.state != MIGRATED_OUT, rank.address_space in (0, self.pid), own


class JobView:
    """`warnings` say what is missing."""

    def __init__(self, processes: Sequence[ViewedProcess], warnings: tuple[str, ...] = ()) -> None:
        self.processes = tuple(processes)
        self._warnings = warnings

    @cached_property
    def _holders(self) -> dict[int, ViewedProcess]:
        claims: dict[int, tuple[tuple[int, bool, bool, bool], ViewedProcess]] = {}
        for process in self.processes:
            for rank in process.moment.table.ranks:
                claim = process.claim(rank)
                if rank.rank not in claims or claim > claims[rank.rank][0]:
                    claims[rank.rank] = claim, process
        return {number: claims[number][1] for number in sorted(claims)}

    @cached_property
    def _table(self) -> RankTable:
        """One table with every rank once."""
        ranks = tuple(self.of(number).rank(number) for number in self._holders)
        tables = [process.moment.table for process in self.processes]
        return replace(tables[0], ranks=ranks, rank_count=max(table.rank_count for table in tables))

    @property
    def warnings(self) -> Iterator[str]:
        """What is wrong with the tables, and what is not in them."""
        for process in self.processes:
            yield from process.moment.table.warnings
        yield from self._warnings

    @property
    def spans_processes(self) -> bool:
        """Return whether the job has several processes."""
        return len(self.processes) > 1

    def process(self, number: int) -> ViewedProcess:
        """The one that has a rank; raises `UsageError` if none does."""
        if not self.spans_processes:
            self.processes[0].moment.rank(number)
            return self.processes[0]
        viewed_process = self._holders.get(number)
        if viewed_process is None:
            raise no_such_rank(number, self._table, several=True)
        return viewed_process

    def check_has_arrived(self, number: int) -> None:
        """Raise `UsageError` for a rank that is between two of these processes."""
        rank = self.rank(number)
        if rank.state == MIGRATED_OUT and rank.moves:
            for process in self.processes:
                if process.moment.table.process_index == rank.process:
                    raise UsageError(f"rank {number} is on its way to {process.name}", "continue until it has arrived")

    def of(self, number: int) -> ProcessView:
        """The rank's process; raises `UsageError` if none has it."""
        return self.process(number).moment

    def place(self, number: int) -> str:
        """` in inferior 2 (4711)`, "" where there is one process only."""
        return f" in {self.process(number).name}" if self.spans_processes else ""

    def rank(self, number: int) -> Rank:
        """Return a rank by its number."""
        return self.of(number).rank(number)

    def shown(self, number: int) -> Rank:
        """A rank as users see it (`ProcessView.shown`)."""
        return self.of(number).shown(number)

    def select(self, chosen: RankSet, function_of: FunctionOf) -> tuple[int, ...]:
        """The ranks that a set means, ascending; raises `UsageError`."""
        if not self.spans_processes:
            return self.processes[0].moment.select(chosen, function_of)
        return select(chosen, as_shown(chosen, self._table, self.shown), function_of, several=True)


def counterpart(moment: ProcessView, elf_object: Object) -> Optional[Object]:
    """The same file in another process, None if that does not have it."""
    if elf_object.index < len(moment.table.objects) and moment.table.objects[elf_object.index] is elf_object:
        return elf_object
    wanted = elf_object.path, elf_object.build_id
    return next((other for other in moment.table.objects if (other.path, other.build_id) == wanted), None)
