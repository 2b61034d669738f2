"""The system loader's list, in which SMPI's copies are found, also where it is damaged.

The list is a fabricated AMPI job's under `fs`: nothing fabricates SMPI's, and both are the loader's.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pieglobalsfind.decoders.smpi.copies import entries
from tests.support.fabricate.ampi import RANKS, Job

FOLLOWING = 24  # of struct link_map {addr, name, ld, next, prev}


@pytest.mark.parametrize("back_to", range(RANKS + 1))
def test_a_list_that_comes_back_ends_there(tmp_path: Path, back_to: int) -> None:
    """What came before is true; the list is walked once."""
    job = Job("fs")
    sound = entries(job.target(tmp_path), job.target(tmp_path).maps())
    assert len(sound) == RANKS + 1
    target = job.target(tmp_path)
    last = sound[-1][0]
    read, reads = target.read, list[int]()

    def damaged(address: int, size: int) -> bytes:
        reads.append(address)
        assert len(reads) < 1000
        content = read(address, size)
        if address <= last + FOLLOWING < address + size:
            at = last + FOLLOWING - address
            content = content[:at] + struct.pack("<Q", sound[back_to][0]) + content[at + 8 :]
        return content

    target.read = damaged  # type: ignore[method-assign]
    assert entries(target, target.maps()) == sound
