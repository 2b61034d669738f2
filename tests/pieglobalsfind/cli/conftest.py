"""Jobs whose ranks print where their things are, and the command that is asked about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.places import SOURCES, Command, Places, StartPlaces, parse
from tests.support.running import StartJob
from tests.support.sharing import Shared


@pytest.fixture
def start_places(
    tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, rankcxx: Path, rankfort: Path, start_job: StartJob
) -> StartPlaces:
    """Build one of the sources, run it under `ranks` ranks, and wait until all of them have printed and wait."""
    compilers = {".c": rankcc, ".cpp": rankcxx, ".f90": rankfort}

    def start(source: str, *options: str, ranks: int = 3, debug: str = "-g") -> Places:
        path = SOURCES / source
        program = shared.copied([compilers[path.suffix], debug, path], tmp_path / f"{path.stem}_program")
        job = start_job(rankrun, "-n", ranks, *options, program)
        job.wait_for("ready")
        job.wait_until_still()
        places = tuple(parse(line) for line in job.lines if line.startswith("place "))
        assert {place.rank for place in places} == set(range(ranks))
        return Places(job, program, places)

    return start


@pytest.fixture
def find(pieglobalsfind: Path) -> Command:
    return Command(pieglobalsfind)
