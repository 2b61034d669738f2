"""Random walks over all breakpoint commands: what a job of ranks does is what one process does.

Short ones with seeds that stay; `python -m tests.support.gdb.breakpoint_walk` goes on with others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.breakpoint_walk import Programs, differences, notes_of, walk_of


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs.build(tmp_path_factory.mktemp("paces"))


@pytest.mark.parametrize(("seed", "steps", "typed"), [(7, 30, False), (17, 20, True)], ids=["batch", "typed"])
def test_a_walk(gdb: Path, programs: Programs, tmp_path: Path, seed: int, steps: int, typed: bool) -> None:
    walk = walk_of(seed, steps)
    alone, job = (notes_of(gdb, walk, programs, tmp_path, is_job, typed) for is_job in (False, True))
    assert not list(differences(walk, alone, job, typed))
