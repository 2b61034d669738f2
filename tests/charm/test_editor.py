"""An editor on stock AMPI, whose frames have source files if it was built with -g, and are in the program's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, RANKS, build, running
from tests.support.lldb.editor import attached, clicked, stacks

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")


@pytest.mark.parametrize("method", COPIES)
def test_clicks_hovers_and_watches(method: str, tmp_path: Path) -> None:
    build(tmp_path, method, "c")
    with running(tmp_path) as up, attached(up.pid, tmp_path) as adapter:
        found = stacks(adapter)
        assert sorted(found) == list(range(RANKS))
        for rank, frames in found.items():
            frame = clicked(frames)
            assert Path(frame["source"]["path"]).name == "prog.c"
            assert "MPI_Recv" in frames[frames.index(frame) - 1]["name"] or rank == 0
            for context in ("hover", "watch"):
                answer = adapter.ask("evaluate", expression="g_rank", frameId=frame["id"], context=context)
                assert answer["result"] == str(rank)
