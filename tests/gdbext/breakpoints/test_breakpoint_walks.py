"""Random walks over all breakpoint commands: what a job of ranks does is what one process does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.gdb.breakpoint_walk import GdbCrashError, Programs, differences, notes_of, walk_of

STEPS = 25


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs.build(tmp_path_factory.mktemp("paces"))


@pytest.mark.parametrize("typed", [False, True], ids=["batch", "typed"])
def test_a_walk(gdb: Path, programs: Programs, tmp_path: Path, typed: bool) -> None:
    """Another walk each time; where GDB itself crashes without us there is nothing to compare."""
    for _ in range(5):
        walk = walk_of(random.randrange(1 << 32), STEPS)
        print("seed", walk.seed)
        try:
            alone, job = (notes_of(gdb, walk, programs, tmp_path, is_job, typed) for is_job in (False, True))
        except GdbCrashError:
            continue
        assert not list(differences(walk, alone, job, typed))
        return
    pytest.fail("GDB itself crashes at each of five walks")
