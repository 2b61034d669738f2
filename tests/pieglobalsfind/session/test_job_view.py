"""Whose a rank is when several processes know it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import BLOCKED, MIGRATED_OUT, RUNNING, Absent, Evidence, Object, Rank, RankTable
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.job_view import JobView, ViewedProcess, counterpart
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets.snapshot import SnapshotTarget

EVIDENCE = Evidence("registry", "test")
UNKNOWN = Absent("unknown")


def rank(number: int, state: str, moves: int = 0, address_space: int = 0) -> Rank:
    unknown = (UNKNOWN,) * 5
    return Rank(number, state, 0, 0, *unknown, None, UNKNOWN, (), EVIDENCE, address_space=address_space, moves=moves)


def process(pid: int, *ranks: Rank, own_pid: int = 0, index: int = 0) -> ViewedProcess:
    table = RankTable(
        "pie",
        "",
        4,
        (),
        tuple(ranks),
        EVIDENCE,
        job_id="job",
        process_id=own_pid or pid,
        process_index=index,
        process_count=2,
        generation=2,
        warnings=(f"of {pid}",),
    )
    return ViewedProcess(ProcessView(SnapshotTarget.__new__(SnapshotTarget), table), f"inferior {pid}", pid)


def test_the_newest_record_tells_where_a_rank_is() -> None:
    """Rank 1 has come back from process 20 to process 10, rank 2 is on its way from 10 to 20."""
    job = JobView(
        [
            process(10, rank(0, RUNNING), rank(1, BLOCKED, moves=2), rank(2, MIGRATED_OUT, moves=1)),
            process(20, rank(1, MIGRATED_OUT, moves=2), rank(2, BLOCKED, moves=0), rank(3, RUNNING)),
        ],
        ("inferior 3 is left out",),
    )
    assert [job.process(number).pid for number in range(4)] == [10, 10, 10, 20]
    assert [job.rank(number).state for number in range(4)] == [RUNNING, BLOCKED, MIGRATED_OUT, RUNNING]
    assert job.place(3) == " in inferior 20"
    assert list(job.warnings) == ["of 10", "of 20", "inferior 3 is left out"]


def test_a_rank_between_two_processes_is_in_neither() -> None:
    gone = replace(rank(0, MIGRATED_OUT, moves=1), process=1)
    first, second = process(10, gone, rank(1, RUNNING)), process(20, rank(2, RUNNING), index=1)
    with pytest.raises(UsageError, match="rank 0 is on its way to inferior 20: continue until it has arrived"):
        JobView([first, second]).check_has_arrived(0)
    JobView([first, second]).check_has_arrived(1)
    JobView([first]).check_has_arrived(0)  # it is elsewhere, as that process says


def test_sets_span_all_processes() -> None:
    job = JobView([process(10, rank(0, RUNNING), rank(1, BLOCKED)), process(20, rank(2, BLOCKED))])

    def chosen(text: str) -> tuple[int, ...]:
        return job.select(rankset.parse(text), lambda number: f"f{number}")

    assert chosen("all") == (0, 1, 2) and chosen("blocked") == (1, 2) and chosen("1-2") == (1, 2)
    assert chosen("/f[02]/") == (0, 2)
    with pytest.raises(UsageError, match="rank 3 lives in another process of the job: these have 0-2"):
        chosen("3")
    with pytest.raises(UsageError, match="there is no rank 4: these processes have 0-2"):
        job.rank(4)


@pytest.mark.parametrize("first", [True, False])
def test_of_processes_that_share_a_registry_the_rank_s_own_has_it(first: bool) -> None:
    """Ranks that are processes, and a mere fork of one."""
    shared = [rank(0, RUNNING, address_space=10), rank(1, RUNNING, address_space=20)]
    processes = [process(10, *shared, own_pid=10), process(20, *shared, own_pid=10)]
    job = JobView(processes if first else processes[::-1])
    assert [job.process(number).pid for number in (0, 1)] == [10, 20]
    plain = [rank(0, RUNNING)]
    forked = [process(10, *plain, own_pid=10), process(30, *plain, own_pid=10)]
    assert JobView(forked if first else forked[::-1]).process(0).pid == 10


def test_one_process_is_as_it_was() -> None:
    only = process(10, rank(0, RUNNING), replace(rank(1, MIGRATED_OUT), moves=1))
    job = JobView([only])
    assert job.of(1) is only.moment and job.place(0) == "" and not job.spans_processes
    with pytest.raises(UsageError, match="rank 2 lives in another process of the job: this one has 0-1"):
        job.rank(2)


def test_a_file_in_another_process_is_the_one_of_its_path_and_build_id() -> None:
    """Each process loads its objects in its own order; one was rebuilt meanwhile."""

    def moment(*files: tuple[str, bytes]) -> ProcessView:
        objects = tuple(
            Object(index, path, build_id, 0, 0, 4096, (), True, False) for index, (path, build_id) in enumerate(files)
        )
        return ProcessView(SnapshotTarget.__new__(SnapshotTarget), RankTable("pie", "", 1, objects, (), EVIDENCE))

    here, there = moment(("/solver", b"1"), ("/libx.so", b"2")), moment(("/libx.so", b"2"), ("/solver", b"3"))
    solver, library = here.table.objects
    assert counterpart(there, library) is there.table.objects[0]
    assert counterpart(there, solver) is None
    assert counterpart(here, library) is library
