"""Stacks of a job's processes become one set: whose stack of a rank that several know, and what is lacking."""

from __future__ import annotations

from itertools import permutations

from inspector.analysis import stack_groups
from inspector.collect.mpi_stacks import StackFindings, places_of
from inspector.collect.sealed_message import opened, sealed
from inspector.job.job import Subject
from pieglobalsfind.stacks.call_tree import Call
from tests.support.fabricate.registry import Rank, Registry

from ...pieglobalsfind.decoders.test_registry import table_of

ADDRESS = 0x7F1000000000
GONE = 4  # RANK_DEBUG_MIGRATED_OUT
COUNT = 8  # ranks, of which 7 is nowhere


def findings(process: int, here: dict[int, int], gone: dict[int, int], moves: int = 1) -> StackFindings:
    """Of one process: it has ranks, by how often they have moved, and knows of others where they went."""
    ranks = [Rank(number, process=process, moves=often) for number, often in here.items()]
    left = [Rank(number, state=GONE, process=to, moves=moves) for number, to in gone.items()]
    table = table_of(Registry(ADDRESS, ranks=(*ranks, *left), rank_count=COUNT))
    calls = {number: (Call("main"), Call(f"in_{process}")) for number in here}
    told = StackFindings(
        frozenset((process,)),
        (),
        Subject(f"process {process}", table, f"0{process}", ""),
        places_of(table.ranks),
        stack_groups.grouped(calls).message(),
        dict.fromkeys(here, "why not"),
    )
    return opened(sealed(told), StackFindings)


def test_a_ranks_stack_is_that_of_the_process_where_it_is() -> None:
    """In any order. Rank 1 has left process 0 since that was read; rank 5 is on its way to 1, rank 6 to 2."""
    parts = [findings(0, {0: 0, 1: 0}, {5: 1}), findings(1, {2: 0, 3: 1}, {1: 2, 6: 2}), findings(2, {1: 1, 4: 0}, {})]
    for first, second, third in permutations(parts):
        merged = StackFindings.merge([StackFindings.merge([first, second]), third])
        subject, stacks = merged.finished("job 1", 4)
        functions = {rank: calls[-1].function for ranks, calls in stacks.groups for rank in ranks}
        assert functions == {0: "in_0", 1: "in_2", 2: "in_1", 3: "in_1", 4: "in_2"}
        assert sorted(stacks.missing) == [0, 1, 2, 3, 4] and stacks.count == 5
        assert (subject.description, subject.taken) == ("job 1", "02")
        assert [rank.rank for rank in subject.table.ranks] == [0, 1, 2, 3, 4, 5, 6]
        assert set(subject.table.warnings) >= {
            "of 4 processes of the job 1 can't be found: 3",
            "rank 5 was moving while the job was read: its data was not found",
            "rank 6 was moving while the job was read: its data was not found",
            "no process shows rank 7",
        }
