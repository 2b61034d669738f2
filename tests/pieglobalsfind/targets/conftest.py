"""One process that holds known bytes, and every way there is to look at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from tests.support.held import BACKENDS, Held, Seen, build, end, gcore, kernel_core, start


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    """The process, waiting."""
    found = start(build(tmp_path), tmp_path)
    yield found
    end(found)


@pytest.fixture(scope="module", params=BACKENDS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Each backend in turn, every one on a process of its own."""
    folder = tmp_path_factory.mktemp("held")
    held = start(build(folder), folder)
    try:
        if request.param == "live":
            yield Seen(open_target(pid=held.pid), held)
        else:
            core = gcore(held, folder) if request.param == "gcore" else kernel_core(held, folder)
            yield Seen(open_target(core=str(core)), held)
    finally:
        end(held)


@pytest.fixture
def target(seen: Seen) -> Target:
    return seen.target


@pytest.fixture
def shown(seen: Seen) -> Held:
    """The process that the target shows; with a kernel's core file it has ended."""
    return seen.held
