"""Reports of a job's processes become one: what that costs, by the number of ranks and of processes."""

from __future__ import annotations

from inspector.analysis.global_values import DIFFERS, Globals, GlobalValues, Group
from inspector.analysis.report import Report
from inspector.collect import whole_job
from inspector.job.job import Subject
from inspector.pointers.findings import Audit
from tests.support.fabricate.registry import Rank, Registry
from tests.support.steps import steps_of

from ...pieglobalsfind.decoders.test_registry import table_of

ADDRESS = 0x7F1000000000
GONE = 4  # RANK_DEBUG_MIGRATED_OUT


def report(process: int, numbers: range, gone: range) -> Report:
    """Of one process of many: it has some ranks, and knows that others have left it."""
    here = [Rank(number, process=process) for number in numbers]
    left = [Rank(number, state=GONE, process=process - 1, moves=1) for number in gone]
    table = table_of(Registry(ADDRESS, ranks=(*here, *left), rank_count=1 << 20))
    groups = tuple(Group(tuple(number for number in numbers if number % 3 == value), str(value)) for value in range(3))
    variable = GlobalValues("my_rank", "solver", "solver.c", 3, "int", 4, "data", groups, DIFFERS)
    return Report(Subject(f"process {process}", table, "", ""), Globals((variable,), ()), Audit((), {}, (), 0), ())


def steps(processes: int, ranks: int) -> int:
    """Of merging the reports of so many processes with so many ranks each."""
    several = [report(one, range(one * ranks, (one + 1) * ranks), range(0)) for one in range(processes)]
    whole_job.merge_reports(several)  # what is only done once
    return steps_of(lambda: whole_job.merge_reports(several))


def test_a_rank_that_was_elsewhere_is_told_of_by_where_it_is() -> None:
    here, before = report(0, range(2), range(0)), report(1, range(3, 5), range(1, 3))
    merged, amiss = whole_job.merge_reports([before, here])
    found = {rank.rank: (rank.state, rank.process) for rank in merged.subject.table.ranks}
    # Process 0 has rank 1 as one that never moved: process 1 knows that it has left since.
    assert found == {
        0: ("blocked", 0), 1: ("migrated-out", 0), 2: ("migrated-out", 0), 3: ("blocked", 1), 4: ("blocked", 1)
    }  # fmt: skip
    assert amiss == ()
    (variable,) = merged.globals.values
    assert [(group.ranks, group.value) for group in variable.groups] == [((0, 3), "0"), ((4,), "1")], (
        "1 is not there any more"
    )


def test_merging_costs_as_much_more_as_there_are_more_ranks() -> None:
    few = steps(4, 50)
    assert steps(4, 150) < 3.3 * few, "thrice the ranks"
    assert steps(12, 50) < 3.3 * few, "thrice the processes"
