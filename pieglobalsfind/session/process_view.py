"""A process between two stops: its rank table, and everything that is made from it once and kept until it runs on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pieglobalsfind.decoders.lazy_ranks import columns_of
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.memory_map import of_files
from pieglobalsfind.model import Rank, RankTable, Region
from pieglobalsfind.ranks.rankset import FunctionOf, RankSet, asks_for_states, no_such_rank, select
from pieglobalsfind.target import MemoryMapping, Target

if TYPE_CHECKING:  # imported when they are needed: debuggers start the sooner
    from pieglobalsfind.decoders.communicators import Communicators
    from pieglobalsfind.mpi.call_from_stack import RequestsOf
    from pieglobalsfind.ranks.symbolize import Symbolizer
    from pieglobalsfind.ranks.translate import Translator
    from pieglobalsfind.stacks.saved_registers import Contexts
    from pieglobalsfind.stacks.unwind import Walker


@dataclass(frozen=True)
class ProcessView:
    """The target between two stops: one rank table serves every command until the target runs again."""

    target: Target
    table: RankTable

    @cached_property
    def translator(self) -> Translator:
        """Return what turns addresses into owners, made once."""
        from pieglobalsfind.ranks.translate import Translator

        return Translator(self.table, self._maps)

    @cached_property
    def copy_paths(self) -> frozenset[str]:
        """The files that the loader has loaded ranks' copies from, where it did; also as they were before deletion."""
        copies = columns_of(self.table.ranks).copies
        files = of_files(self._maps, "/")
        paths = {file.path for file in files if bisect_left(copies, file.start) < bisect_left(copies, file.end)}
        return frozenset(paths | {path.removesuffix(" (deleted)") for path in paths})

    @cached_property
    def symbolizer(self) -> Symbolizer:
        """Return what turns addresses into names, made once."""
        from pieglobalsfind.ranks.symbolize import Symbolizer  # late: it takes longer to import than all the rest

        return Symbolizer(self.target, self.table)

    @cached_property
    def contexts(self) -> Contexts:
        """Return what reads ranks' saved registers, made once."""
        from pieglobalsfind.stacks.saved_registers import Contexts

        return Contexts(self.target, self.table, self._maps)

    @cached_property
    def entry(self) -> Region:
        """The code of the function with which every rank's stack begins, empty where that is not known."""
        if self.table.entry_function_size or not self.table.entry_function:
            return Region(self.table.entry_function, self.table.entry_function_size)
        from pieglobalsfind.ranks.symbolize import entry_of  # late: few runtimes leave the size to the symbol

        return entry_of(self.table, self.translator, self.symbolizer)

    @cached_property
    def _maps(self) -> Sequence[MemoryMapping]:
        return self.target.maps()

    @cached_property
    def walker(self) -> Walker:
        """Raises `ObjectFileError` where elfutils' libdw is missing."""
        from pieglobalsfind.dwarf.libdw.bindings import library
        from pieglobalsfind.stacks.unwind import Walker

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
        from pieglobalsfind.mpi.call_from_stack import TIERS, as_blocked

        rank = self.rank(number)
        if rank.evidence.tier not in TIERS:
            return self.in_world(rank)
        try:
            requests = None if self.target.is_live else self._requests
            return as_blocked(self.target, self.table, self.walker, rank, requests)
        except ObjectFileError:  # libdw is missing
            return rank

    @cached_property
    def _requests(self) -> RequestsOf:
        from pieglobalsfind.mpi.call_from_stack import RequestsOf

        return RequestsOf(self.target, self.table)

    def in_world(self, rank: Rank) -> Rank:
        """The rank; the peer that it waits for has its number in MPI_COMM_WORLD, as far as that is known."""
        if rank.waiting is None or rank.waiting.peer < 0:
            return rank
        from pieglobalsfind.decoders.communicators import in_world, own_communicator

        number = rank.waiting.communicator
        if number not in self._members:
            self._members.update(own_communicator(self.target, self.table, rank))
        return in_world(rank, self._members if number in self._members else self._communicators)

    @cached_property
    def _members(self) -> Communicators:
        """Those of which some rank has been asked."""
        return {}

    @cached_property
    def _communicators(self) -> Communicators:
        from pieglobalsfind.decoders.communicators import communicators

        return communicators(self.target, self.table)

    def select(self, chosen: RankSet, function_of: FunctionOf) -> tuple[int, ...]:
        """The ranks that a set means, ascending, by the states that users see; raises `UsageError`."""
        return select(chosen, as_shown(chosen, self.table, self.shown), function_of)


def as_shown(chosen: RankSet, table: RankTable, shown: Callable[[int], Rank]) -> RankTable:
    """The table with the states that users see, if the set asks for states."""
    if not asks_for_states(chosen):
        return table
    return replace(table, ranks=tuple(shown(rank.rank) for rank in table.ranks))
