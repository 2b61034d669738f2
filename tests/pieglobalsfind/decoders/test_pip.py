"""Process-in-Process in fabricated memory: tasks are found as they are, and nothing is told that does not validate."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.pip import decode as pip
from pieglobalsfind.decoders.pip import threads
from pieglobalsfind.machine.aarch64 import AARCH64
from pieglobalsfind.machine.x86_64 import X86_64
from pieglobalsfind.model import READY, RUNNING, Absent, Rank, Rebase, Region, TlsBlock
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.session.breakpoints_in_shared_memory import danger
from pieglobalsfind.session.process_view import ProcessView
from tests.support.fabricate.memory import Changing, Mapped, MemoryTarget
from tests.support.fabricate.pip import AREA, BLOCK_AT, HEAP, LIBPIP, TLS_SIZE, Job


def copy_of(rank: Rank, number: int) -> int:
    return next(
        placement.copy for placement in rank.placements if isinstance(placement, Rebase) and placement.object == number
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "how",
    [{}, {"namespaces_listed": False}, {"namespaces_listed": False, "own_glibc": True}, {"is_aarch64": True}],
    ids=["glibc 2.35", "older glibc", "PiP's glibc", "AArch64"],
)
def test_tasks_are_ranks_with_their_own_numbers(tmp_path: Path, version: int, how: dict[str, bool]) -> None:
    """The records of v2 and v3 differ in all but where they are."""
    job = Job(version, **how)  # type: ignore[arg-type]
    target = job.target(tmp_path)
    table = decode(target)
    assert (table.runtime, table.method, table.rank_count, table.warnings) == ("PiP", "pipthread", 4, ())
    assert [rank.rank for rank in table.ranks] == [0, 1, 2]
    (program,) = (elf_object for elf_object in table.objects if elf_object.is_program)
    assert program.path.endswith("/task")
    for rank in table.ranks:
        assert copy_of(rank, program.index) == job.program(rank.rank)
        assert (rank.state, rank.kernel_thread, rank.address_space) == (RUNNING, job.tid(rank.rank), 0)
        assert rank.stack == Region(job.stack(rank.rank), BLOCK_AT)
        blocks = [placement for placement in rank.placements if isinstance(placement, TlsBlock)]
        assert blocks == [TlsBlock(program.index, job.thread_locals(rank.rank), TLS_SIZE, False, 0)]
        owner = Translator(table, target.maps()).owner(job.program(rank.rank) + 0x2008)
        assert (owner.rank, owner.object, owner.offset) == (rank.rank, program.index, 0x2008)


@pytest.mark.parametrize("version", [2, 3])
def test_on_aarch64_a_thread_that_libc_does_not_list_is_not_guessed(tmp_path: Path, version: int) -> None:
    table = decode(Job(version, is_aarch64=True, unlisted=(1,)).target(tmp_path))
    assert table.processor is AARCH64
    assert [(rank.state, rank.kernel_thread) for rank in table.ranks] == [(RUNNING, 5000), (READY, 0), (RUNNING, 5002)]


def test_the_root_is_no_rank(tmp_path: Path) -> None:
    job = Job()
    target = job.target(tmp_path)
    owner = Translator(decode(target), target.maps()).owner(job.namespace(-1) + LIBPIP + 0x1000)
    assert owner.rank is None and owner.kind == "runtime"


@pytest.mark.parametrize("version", [2, 3])
def test_a_task_whose_thread_has_ended_does_not_run(tmp_path: Path, version: int) -> None:
    table = decode(Job(version, ended=(0, 2)).target(tmp_path))
    assert [(rank.state, rank.kernel_thread) for rank in table.ranks] == [(READY, 0), (RUNNING, 5001), (READY, 0)]
    assert table.ranks[0].context == pip.NO_THREAD and isinstance(table.ranks[0].stack, Absent)


@pytest.mark.parametrize("version", [2, 3])
def test_a_thread_that_all_records_lead_to_is_no_task_s(tmp_path: Path, version: int) -> None:
    """Each has its own: the one that has started all tasks is none of them, though the way to it is shorter."""
    job = Job(version, names_starter=True)
    table = decode(job.target(tmp_path))
    assert [(rank.state, rank.kernel_thread) for rank in table.ranks] == [(RUNNING, job.tid(one)) for one in (0, 1, 2)]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("looks_from", [-1, 1])
def test_a_breakpoint_for_one_process_is_refused_for_the_others(tmp_path: Path, version: int, looks_from: int) -> None:
    """The tasks share all memory: whoever is not attached would die of it, and is named."""
    job = Job(version, is_process_mode=True, looks_from=looks_from)
    target = job.target(tmp_path)
    table = decode(target)
    assert table.method == "pipprocess"
    assert [rank.address_space for rank in table.ranks] == [job.tid(one) for one in (0, 1, 2)]
    shared = danger(ProcessView(target, table), job.namespace(-1) + LIBPIP + 0x1000)
    others = {-1: "0-2", 1: "0,2"}[looks_from]
    assert shared is not None and f"it would kill rank {others}" in shared
    own = danger(ProcessView(target, table), job.program(1) + 0x1000)
    assert (own is None) == (looks_from == 1) and (own is None or "it would kill rank 1" in own)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "moment",
    [
        {"loading": "mapped"},
        {"loading": "unzeroed"},
        {"names_root": False},
        {"names_task": False},
        {"ending": "cleared"},
        {"ending": "freed"},
    ],
    ids=lambda one: next(map(str, one.items())),
)
def test_a_job_that_starts_or_ends_is_said_to_do_so(tmp_path: Path, version: int, moment: dict[str, Any]) -> None:
    """Each step of the loader's and of `pip_init`, and of `pip_fin`, in their order."""
    target = replace(Job(version, present=(), **moment).target(tmp_path), is_live=True)
    table = decode(target)
    assert (table.ranks, table.warnings, table.runtime) == ((), (pip.STARTING,), "PiP")


@pytest.mark.parametrize("loading", ["mapped", "unzeroed"])
def test_a_task_that_is_being_loaded_is_none_yet(tmp_path: Path, loading: str) -> None:
    table = decode(Job(loading=loading, loaded_by=2).target(tmp_path))
    assert [rank.rank for rank in table.ranks] == [0, 1] and table.warnings == ()


def without_program(job: Job, task: int, folder: Path) -> MemoryTarget:
    """The job, where a task's program is listed by loader and kernel, and can't be read any more."""
    target = job.target(folder)
    gone = replace(next(mapped for mapped in target.mapped if mapped.start == job.program(task)), start=0x1000)
    return replace(target, mapped=[mapped if mapped.start != job.program(task) else gone for mapped in target.mapped])


def test_tasks_that_go_meanwhile_are_looked_at_again(tmp_path: Path) -> None:
    """A namespace that is there by the map, and unmapped before it is read, is not damage."""
    whole, going, gone = (
        Job().target(tmp_path),
        without_program(Job(), 2, tmp_path),
        Job(present=(0, 1)).target(tmp_path),
    )
    table = decode(Changing([whole, going, gone]))
    assert [rank.rank for rank in table.ranks] == [0, 1] and table.warnings == ()


def test_tasks_that_never_keep_still_are_said_to_change(tmp_path: Path) -> None:
    going, fewer = without_program(Job(), 2, tmp_path), without_program(Job(present=(0, 2)), 2, tmp_path)
    table = decode(Changing([going, fewer] * pip.MOST_TRIES * 2))
    assert table.warnings == (pip.CHANGING,)
    assert all(copy_of(rank, 0) == Job().program(rank.rank) for rank in table.ranks)


@pytest.mark.parametrize(("state", "warning"), [(0, pip.LOST.format("2")), (1, pip.CHANGING), (2, pip.CHANGING)])
def test_a_list_that_the_loader_changes_now_is_no_damage(tmp_path: Path, state: int, warning: str) -> None:
    table = decode(without_program(Job(state=state), 2, tmp_path))
    assert [rank.rank for rank in table.ranks] == [0, 1] and table.warnings == (warning,)


def test_two_that_claim_one_number_are_both_left_out(tmp_path: Path) -> None:
    table = decode(Job(twice=(1,)).target(tmp_path))
    assert [rank.rank for rank in table.ranks] == [0, 2]
    assert table.warnings == (pip.LOST.format("1"),)


def test_a_record_that_is_none_is_left_out(tmp_path: Path) -> None:
    table = decode(Job(off_record=(0,)).target(tmp_path))
    assert [rank.rank for rank in table.ranks] == [1, 2]


@pytest.mark.parametrize(
    ("job", "warning"),
    [
        (Job(stripped=True), pip.STRIPPED),
        (Job(started=False), pip.STARTING),
        (Job(magic=b"PrcInPro"), pip.MISMATCH),
        (Job(stride=1 << 40), pip.MISMATCH),
        (Job(stride=12), pip.MISMATCH),
        (Job(stride=0x88), pip.MISMATCH),
        (Job(present=()), pip.STARTING),
        (Job(ending="freed"), pip.MISMATCH),  # of a core file that lacks it nobody knows whether it was there
    ],
)
def test_what_does_not_validate_is_said_and_not_used(tmp_path: Path, job: Job, warning: str) -> None:
    table = decode(job.target(tmp_path))
    assert table.ranks == () and table.warnings == (warning,) and table.runtime == "PiP"


def test_tasks_whose_threads_nobody_describes_are_said_to_be_unknown(tmp_path: Path) -> None:
    """Whether they are processes, which a breakpoint would kill, is not guessed."""
    table = decode(Job(namespaces_listed=False, own_glibc=True, undescribed=True).target(tmp_path))
    assert table.warnings == (pip.UNDESCRIBED,)
    assert [(rank.state, rank.kernel_thread) for rank in table.ranks] == [(READY, 0)] * 3


def test_a_list_that_goes_in_circles_ends(tmp_path: Path) -> None:
    target = Job().target(tmp_path)
    heap = next(mapped for mapped in target.mapped if mapped.start == HEAP)
    data = bytearray(heap.data)
    struct.pack_into("<Q", data, 0x1000 + 0x400 + 0x200 + 24, HEAP + 0x1400)  # the last of task 0's follows its first
    struct.pack_into("<Q", data, 0x40 * 3 + 40, HEAP)  # after the last namespace comes the first
    heap.data = bytes(data)
    assert [rank.rank for rank in decode(target).ranks] == [0, 1, 2]


def test_records_that_lead_everywhere_are_given_up() -> None:
    """Each word of each is a pointer to others."""
    size, count = 8 * threads.MOST_WORDS, 64
    area = struct.pack(f"<{size // 8 * count}Q", *(AREA + size * (at % count) for at in range(size // 8 * count)))
    target = MemoryTarget([Mapped(AREA, len(area), area)])
    records = {number: AREA + size * number for number in range(count)}
    assert threads.find(target, target.maps(), X86_64, 0, records, size, (AREA, AREA + len(area)), {}) == {}
    assert len(target.reads) <= threads.MOST_POINTERS < count * (size // 8) ** 2


def test_wild_pointers_lead_to_no_rank(tmp_path: Path) -> None:
    for address in (0, 8, AREA, HEAP, 0x7F0001100000, (1 << 64) - 8):
        target = Job().target(tmp_path)
        heap = next(mapped for mapped in target.mapped if mapped.start == HEAP)
        for at in (8, 40, 0x1000 + 24, 0x1000 + 0x400):
            data = bytearray(heap.data)
            struct.pack_into("<Q", data, at, address)
            changed = replace(
                target,
                mapped=[mapped if mapped is not heap else replace(heap, data=bytes(data)) for mapped in target.mapped],
            )
            table = decode(changed)
            for rank in table.ranks:
                assert copy_of(
                    rank, next(elf_object.index for elf_object in table.objects if elf_object.is_program)
                ) == Job().program(rank.rank)
