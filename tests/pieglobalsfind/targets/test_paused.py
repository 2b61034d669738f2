"""What a pause copies: a page that can't be read takes nothing else along, and is not asked for again."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.targets.live import LiveTarget
from pieglobalsfind.targets.paused import Plan, RecordedTarget, pause
from tests.support.running import StartJob

PAGE = mmap.PAGESIZE
# Two pages of a file that has one: the second is part of the mapping, and can't be read.
PROGRAM = f"""
import ctypes, signal, sys
file = open(sys.argv[1], "r+b")
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
print("AT", hex(libc.mmap(None, {2 * PAGE}, 3, 2, file.fileno(), 0)), flush=True)
signal.pause()
"""


@pytest.fixture
def place(tmp_path: Path, start_job: StartJob) -> tuple[LiveTarget, int]:
    """A process, and where its two pages are."""
    (tmp_path / "page").write_bytes(b"ranklens" * (PAGE // 8))
    job = start_job(sys.executable, "-c", PROGRAM, tmp_path / "page")
    line = job.wait_for("AT ")
    return LiveTarget(job.pid), int(line.split()[1], 16)


def test_an_unreadable_page_is_not_missed(place: tuple[LiveTarget, int]) -> None:
    live, start = place
    (target,) = pause([(live, Plan(((start, start + 256),)))])
    assert target.read(start, 8) == b"ranklens"
    with pytest.raises(MemoryUnreadable):
        target.read(start + PAGE, 8)
    assert target.missed() == ()
    with pytest.raises(MemoryUnreadable):
        target.read(start + 256, PAGE)
    assert target.missed() == ((start, start + PAGE),)
    (again,) = pause([(live, Plan(((start, start + 256),)).enlarged(target.missed()))])
    assert again.read(start + 256, 8) == b"ranklens"


def test_what_could_not_be_read_is_not_planned(place: tuple[LiveTarget, int]) -> None:
    live, start = place
    recorded = RecordedTarget(live)
    assert recorded.read_many([(start, 8), (start + PAGE - 8, 16), (start + 512, 8)]) == [
        b"ranklens",
        None,
        b"ranklens",
    ]
    assert recorded.noted() == ((start, start + 256), (start + 512, start + 768))
