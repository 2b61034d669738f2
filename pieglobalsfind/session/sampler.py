"""The stacks of a running process's ranks, again and again: each look is a pause, and prepares the next one.

Takes a live process; gives samples. The first look finds the ranks. Later ones read again what changes of them, and
copy no more than that; from time to time, and where a rank may have come or gone, the ranks are found again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional, Union

from pieglobalsfind.decoders.lazy_ranks import columns_of
from pieglobalsfind.decoders.refresh_ranks import KnownRanks, KnownRecords, known_ranks
from pieglobalsfind.decoders.running import is_between_ranks
from pieglobalsfind.dwarf.libdw.bindings import library
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, RUNNING, Rank, RankTable
from pieglobalsfind.ranks.symbolize import Symbolizer
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.session.one_moment import ProcessPlan, at_one_moment, decoded, light_plan, plan_for
from pieglobalsfind.session.runtime_frames import fold_calls, runtime_path, with_mpi_name
from pieglobalsfind.stacks.call_tree import Call
from pieglobalsfind.stacks.saved_registers import Contexts
from pieglobalsfind.stacks.unchanged_stacks import StackMarks
from pieglobalsfind.stacks.unwind import Walker
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import Pause, PausedTarget
from pieglobalsfind.targets.stop_and_copy import Room, pause

RENEWAL = 2.0  # seconds after which ranks are found again at the earliest, where that takes longer than to read them
LEAST_BETWEEN = 20  # times as long as finding them took
MOST_NAMED = 20_000  # different stacks whose names are kept

Calls = tuple[Call, ...]


@dataclass(frozen=True)
class Sample:
    """Where all ranks are at one moment: `calls` by rank, outermost first, and why other ranks have none.

    `clock` is the moment (`time.monotonic`, seconds), `stopped` for how many seconds the process stood still for it.
    """

    clock: float
    stopped: float
    calls: Mapping[int, Calls]
    missing: Mapping[int, str]


@dataclass(frozen=True)
class _Known:
    """What serves later looks: the ranks, what is copied of them, and until when (`time.monotonic`)."""

    ranks: Union[KnownRanks, KnownRecords]
    process: ProcessPlan
    marks: StackMarks
    until: float


class Sampler:
    """One process; `with_runtime`: stacks go on into the MPI runtime's own calls. Raises `RanklensError` without ranks.

    `table` is that of the last look, but for what ranks wait for that are suspended as they were before.
    """

    def __init__(self, live: LiveTarget, with_runtime: bool = False) -> None:
        library()
        self._live = live
        self._with_runtime = with_runtime
        self._process = plan_for(live, False)
        self._known: Optional[_Known] = None
        self._walker: Optional[Walker] = None
        self._contexts: Optional[Contexts] = None
        self._marks: Optional[StackMarks] = None
        self._runtime = ""
        self._folded: dict[Calls, Calls] = {}
        self._room = Room()
        self.table: Optional[RankTable] = None

    def look(self) -> Sample:
        """Pause the process and read the stacks. Raises `RanklensError` if it has ended, or can't be stopped."""
        return self.look_again() or self._look_anew()

    def look_again(self) -> Optional[Sample]:
        """The same with what is known of the ranks; None if that is too old, or does not fit any more."""
        last = self._known
        if last is None or time.monotonic() > last.until:
            return None
        (target,) = pause([(last.process.live, last.process.plan)], self._room)
        met: dict[int, Calls] = {}

        def is_known(rank: int, context: int) -> bool:
            calls = last.marks.calls(target, rank, context)
            if calls is not None:
                met[rank] = calls
            return calls is not None

        table = last.ranks.at_moment(target, is_known)
        if table is None or is_between_ranks(table):
            return None
        sample = self._read(target, table, met)
        return sample if not any(target.missed()) else None

    def _look_anew(self) -> Sample:
        def read(targets: Sequence[PausedTarget]) -> tuple[Pause, Sample]:
            (target,) = targets
            table = decoded(target)
            self._begin(target, table)
            return target.pause, self._read(target, table, {})

        began = time.monotonic()
        how, sample = at_one_moment([self._process], False, read)
        if how.stops > 1:  # more than was planned: the next plan has it
            self._process = plan_for(self._live, False)
        if self._known is not None:
            took = time.monotonic() - began
            self._known = replace(self._known, until=began + took + max(RENEWAL, LEAST_BETWEEN * took))
        return sample

    def _begin(self, target: PausedTarget, table: RankTable) -> None:
        """Keep what is known of the process's code, unless it lies elsewhere now."""
        is_known = self.table is not None and _same_code(self.table, table)
        if not is_known or self._walker is None or self._walker.known_stacks > MOST_NAMED:
            translator = Translator(table, target.maps())
            symbolizer = Symbolizer(target, table)
            self._contexts = Contexts(target, table, target.maps())
            self._walker = Walker(target, table, translator, self._contexts, symbolizer)
            self._runtime = "" if self._with_runtime else runtime_path(table, translator)
            self._folded = {}
        ranks = None if self._process.others else known_ranks(target, table)
        self._known = None
        if ranks is not None:
            light = ProcessPlan(self._live, light_plan(table, self._process.plan, ranks.places))
            if not is_known or self._marks is None:
                self._marks = StackMarks(table.context_layout, table.processor.stack_pointer)
            self._known = _Known(ranks, light, self._marks, 0.0)

    def _read(self, target: PausedTarget, table: RankTable, met: Mapping[int, Calls]) -> Sample:
        """`met` are the calls of ranks whose stacks are as they were."""
        assert self._walker is not None and self._contexts is not None
        self.table = table
        self._contexts = self._contexts.at_moment(target, table)
        self._walker = self._walker.at_moment(target, table, self._contexts)
        calls: dict[int, Calls] = dict(met)
        missing: dict[int, str] = {}
        left = [rank for rank in table.ranks if rank.rank not in met and rank.state not in (EXITED, MIGRATED_OUT)]
        for rank, walked in self._walker.stacks(left):
            if isinstance(walked, RanklensError):
                missing[rank.rank] = walked.sentence.removeprefix(f"rank {rank.rank} ")
            elif walked.ends:  # which call of MPI it is in may be in the part that is lacking
                missing[rank.rank] = "its stack is not whole"
            else:
                calls[rank.rank] = self._shown(walked.calls)
                self._learn(rank, calls[rank.rank])
        return Sample(target.pause.clock, target.pause.seconds, calls, missing)

    def _learn(self, rank: Rank, calls: Calls) -> None:
        """Recognize this stack of a suspended rank at later looks."""
        if self._known is None or self._walker is None or rank.state == RUNNING:
            return
        shape = self._walker.shape_now(rank)
        if shape is not None:
            self._known.marks.learn(rank, shape, calls)

    def _shown(self, calls: Calls) -> Calls:
        if self._with_runtime:
            return calls
        folded = self._folded.get(calls)
        if folded is None:
            if len(self._folded) > MOST_NAMED:
                self._folded.clear()
            folded = self._folded[calls] = tuple(with_mpi_name(fold_calls(self._runtime, calls), calls))
        return folded


def _same_code(before: RankTable, table: RankTable) -> bool:
    """Whether objects and ranks' copies of them are where they were: then a pc means what it meant."""
    if before.objects != table.objects:
        return False
    return list(columns_of(before.ranks).copies) == list(columns_of(table.ranks).copies)
