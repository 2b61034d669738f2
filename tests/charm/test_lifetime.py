"""Jobs looked at without a pause, from their first moment to after their end, and while ranks migrate.

Whatever is told at a moment: an address is the rank's that prints it, or nobody's, and errors are sentences.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Optional

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.ampi import decode as ampi
from pieglobalsfind.errors import TargetError
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.targets import open_target
from tests.support.charm.jobs import AMPICC, COPIES, METHODS, RANKS, WORKERS, build, gated, turns_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
UNKNOWN = {ampi.MISMATCH, ampi.UNKNOWN_LAYOUT, ampi.NOT_THREADS}


def moment_of(pid: int) -> Translator:
    """What is told of a process now; raises `TargetError`."""
    target = open_target(pid=pid)
    table = decode(target)
    numbers = [rank.rank for rank in table.ranks]
    assert len(set(numbers)) == len(numbers) and (table.warnings or table.ranks), table
    assert not UNKNOWN & set(table.warnings), "a job that starts, migrates or ends is not an unknown layout"
    return Translator(table, target.maps())


def next_of(pid: int) -> Optional[Translator]:
    """What is told of a process now; None once it is no more, or is between its end and its parent's wait."""
    with suppress(TargetError):
        return moment_of(pid)
    return None


def is_mapped(pid: int) -> bool:
    """Whether the new process has its program yet; before, it is like any other."""
    return "/prog\n" in Path(f"/proc/{pid}/maps").read_text()


def check(translator: Translator, truth: dict[int, str]) -> None:
    for rank, address in truth.items():
        owner = translator.owner(int(address, 16))
        assert owner.rank in (rank, None), (rank, owner)


@contextmanager
def ending(job: subprocess.Popen[bytes]) -> Iterator[None]:
    """The job does not outlive what is done inside."""
    try:
        yield
    finally:
        job.kill()


@pytest.mark.parametrize("method", [method for method in METHODS if method != "none"])
def test_from_the_first_moment_to_the_last(method: str, tmp_path: Path) -> None:
    build(tmp_path, method, "c")
    log = tmp_path / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(["./prog", f"+vp{RANKS}", *WORKERS], cwd=tmp_path, stdout=output) as job,
        ending(job),
    ):
        seen, told = [], {}
        wait_until(lambda: is_mapped(job.pid), "the kernel has not mapped the program")
        while (translator := next_of(job.pid)) is not None:
            seen.append(translator)
            told = dict(re.findall(r"^TRUTH (\d+) (0x\w+) 0x\w+ \d+$", log.read_text(), re.MULTILINE))
            if len(told) == RANKS:
                whole = moment_of(job.pid)
                job.kill()
    truth = {int(rank): address for rank, address in told.items()}
    assert len(truth) == RANKS
    assert {rank: whole.owner(int(address, 16)).rank for rank, address in truth.items()} == {one: one for one in truth}
    for translator in seen:
        check(translator, truth)
    with pytest.raises(TargetError):
        moment_of(job.pid)


@pytest.mark.parametrize("method", COPIES)
def test_while_ranks_migrate(method: str, tmp_path: Path) -> None:
    """A rank has the same addresses wherever it is; in the process that it has left they are nobody's."""
    build(tmp_path, method, "gated.c")
    with gated(tmp_path, 6) as (job, found):
        truth = {rank: address for ranks in found.values() for rank, address in ranks.items()}
        for pid, ranks in found.items():
            now = moment_of(pid)
            assert {now.owner(int(address, 16)).rank for address in ranks.values()} == set(ranks)
        (tmp_path / "go").touch()
        looked = set(found)
        while looked:
            moments = {pid: next_of(pid) for pid in looked}
            for translator in filter(None, moments.values()):
                check(translator, truth)
            looked = {pid for pid, translator in moments.items() if translator is not None}
        assert len({pid for _, _, pid in turns_of(job)}) == 2
