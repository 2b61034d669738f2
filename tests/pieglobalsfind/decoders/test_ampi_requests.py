"""What AMPI's ranks wait for by its own requests: on fabricated jobs, sound and damaged. On real ones: tests/charm."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi.requests import REQUEST_SIZE, AmpiRequests
from pieglobalsfind.model import Awaited, Waiting
from pieglobalsfind.ranges import Range, merged, range_at
from tests.support.fabricate.ampi import PARENTS, PART, RANKS, WORLD, Job, Request
from tests.support.fabricate.memory import Mapped

OWN = 1_000_001
ANY_TAG, BCAST_TAG = 1_073_741_825, 1_073_741_827
REQUEST = PARENTS + 0x2000 + 0x200 + 0x40  # rank 1's first


def waiting(job: Job, folder: Path, rank: int, call: str, patch: tuple[int, bytes] = (0, b"")) -> Optional[Waiting]:
    """What a rank waits for; `patch`: bytes that are written to an offset in the heap before."""
    target = job.target(folder)
    if patch[1]:
        target.mapped[:] = [patched(mapped, job.heap + patch[0], patch[1]) for mapped in target.mapped]
    table = decode(target)
    return AmpiRequests(target, table).waiting(table.ranks[rank], call)


def patched(mapped: Mapped, address: int, data: bytes) -> Mapped:
    at = address - mapped.start
    if not 0 <= at < mapped.size:
        return mapped
    content = bytearray(mapped.data[0 : mapped.size])
    content[at : at + len(data)] = data
    return Mapped(mapped.start, mapped.size, bytes(content), mapped.path, mapped.protection, mapped.offset)


def job(*requests: Request) -> Job:
    return Job("pie", has_tables=True, running=3, requests={1: requests})


@pytest.mark.parametrize(
    ("call", "requests", "expected"),
    [
        ("MPI_Recv", [Request(2, 41)], Waiting("MPI_Recv", 2, 41, WORLD, True, is_sent=False)),
        ("MPI_Recv", [Request(-1, ANY_TAG)], Waiting("MPI_Recv", -1, -1, WORLD, is_sent=False)),
        ("MPI_Wait", [Request(0, 43, is_sent=True)], Waiting("MPI_Wait", 0, 43, WORLD, True, is_sent=True)),
        ("MPI_Bcast", [Request(2, BCAST_TAG)], Waiting("MPI_Bcast", 2, -2, WORLD, True)),
        ("MPI_Recv", [Request(0, 5, OWN)], Waiting("MPI_Recv", 1, 5, OWN, True, is_sent=False)),
        ("MPI_Recv", [Request(0, 5, PART)], Waiting("MPI_Recv", 0, 5, PART, is_sent=False)),
        (
            "MPI_Waitall",
            [Request(0, 1, is_complete=True), Request(2, 3, is_blocked=False), Request(2, 5), Request(3, 6)],
            Waiting("MPI_Waitall", 2, 5, WORLD, True, is_sent=False, others=(Awaited(3, 6, False),)),
        ),
        (
            "MPI_Waitany",
            [Request(2, 5), Request(3, 6)],
            Waiting("MPI_Waitany", 2, 5, WORLD, True, is_sent=False, others=(Awaited(3, 6, False),), needs_one=True),
        ),
        (
            "MPI_Waitany",
            [Request(2, 5), Request(0, 6, PART)],
            Waiting("MPI_Waitany", unknown="source or destination (its requests are of several communicators)"),
        ),
        ("MPI_Recv", [Request(2, 41, is_blocked=False)], None),
    ],
)
def test_what_a_call_waits_for(tmp_path: Path, call: str, requests: list[Request], expected: Optional[Waiting]) -> None:
    assert waiting(job(*requests), tmp_path, 1, call) == expected
    assert waiting(job(*requests), tmp_path, 2, call) is None


def test_members_of_a_communicator(tmp_path: Path) -> None:
    """Its first member is rank 3 of MPI_COMM_WORLD; so requests of two communicators can be told together."""
    sound = replace(job(Request(0, 5, PART), Request(2, 6)), part=(3, 1))
    expected = Waiting("MPI_Waitall", 3, 5, PART, True, is_sent=False, others=(Awaited(2, 6, False),))
    assert waiting(sound, tmp_path, 1, "MPI_Waitall") == expected
    assert waiting(sound, tmp_path, 1, "MPI_Waitany") == replace(expected, call="MPI_Waitany", needs_one=True)
    partly = waiting(job(Request(0, 5, PART), Request(2, 6)), tmp_path, 1, "MPI_Waitall")
    assert partly is not None
    assert (partly.peer, partly.others) == (2, ()) and partly.unknown.startswith("some sources")
    outside = waiting(replace(job(Request(2, 5, PART)), part=(3, 1)), tmp_path, 1, "MPI_Recv")
    assert outside == Waiting("MPI_Recv", 2, 5, PART, is_sent=False)


@pytest.mark.parametrize(
    "patch",
    [
        (PARENTS + 0x1400 + 0x318, struct.pack("<Q", 3)),  # how many communicators there are
        (PARENTS + 0x3000 + 16, struct.pack("<i", PART + 1)),  # the communicator's own number
        (PARENTS + 0x3000 + 24, struct.pack("<i", 3)),  # its size
        (PARENTS + 0x3200, struct.pack("<i", 4)),  # a member outside the ranks
    ],
    ids=["count", "number", "size", "member"],
)
def test_damaged_communicators(tmp_path: Path, patch: tuple[int, bytes]) -> None:
    sound = replace(job(Request(0, 5, PART)), part=(3, 1))
    assert waiting(sound, tmp_path, 1, "MPI_Recv", patch) == Waiting("MPI_Recv", 0, 5, PART, is_sent=False)


def test_what_a_rehearsal_reads_is_enough_a_moment_later(tmp_path: Path) -> None:
    """By then another rank waits in the communicator. Lists of requests are read again, with the requests in them."""
    before = replace(job(Request(0, 5, PART)), part=(3, 1)).target(tmp_path)
    lists = AmpiRequests(before, decode(before)).read()
    assert len(lists) == RANKS
    after = Job("pie", has_tables=True, running=3, requests={2: (Request(1, 6, PART),)}, part=(3, 1)).target(tmp_path)
    table = decode(after)
    planned = [*before.reads]
    for place in lists:
        begin, end = struct.unpack("<2Q", after.read(place, 16))
        requests = struct.unpack(f"<{(end - begin) // 8}Q", after.read(begin, end - begin))
        planned += [(begin, end - begin), *((request, REQUEST_SIZE) for request in requests if request)]
    after.reads.clear()
    expected = Waiting("MPI_Recv", 1, 6, PART, True, is_sent=False)
    assert AmpiRequests(after, table).waiting(table.ranks[2], "MPI_Recv") == expected
    copied = merged((start, start + size) for start, size in planned)
    assert [read for read in after.reads if not is_within(read, copied)] == []


def is_within(read: tuple[int, int], copied: Sequence[Range]) -> bool:
    copied_range = range_at(copied, read[0])
    return copied_range is not None and sum(read) <= copied_range[1]


def test_a_stripped_program(tmp_path: Path) -> None:
    known = waiting(replace(job(Request(2, 41)), stripped=True), tmp_path, 1, "MPI_Recv")
    assert known == Waiting("MPI_Recv", 2, 41, WORLD, True, is_sent=False)


@pytest.mark.parametrize(
    "patch",
    [
        (REQUEST + 36, struct.pack("<i", 2)),  # its own number
        (REQUEST, struct.pack("<Q", 0x1234)),  # its class
        (REQUEST - 0x40 + 8, struct.pack("<Q", 0x1234)),  # the pointer to it
        (PARENTS + 0x1400 + 0xD8, struct.pack("<Q", 1 << 60)),  # the end of the list
    ],
    ids=["number", "class", "pointer", "list"],
)
def test_damage(tmp_path: Path, patch: tuple[int, bytes]) -> None:
    """What does not validate is not known, and no other rank's answer changes."""
    sound = Job("pie", has_tables=True, running=3, requests={1: (Request(2, 41),), 2: (Request(0, 7),)})
    assert waiting(sound, tmp_path, 1, "MPI_Recv", patch) is None
    other = waiting(sound, tmp_path, 2, "MPI_Recv", patch)
    assert other is not None
    assert (other.peer, other.tag) == (0, 7)
