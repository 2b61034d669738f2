"""Threads that a rank has started itself, as OpenMP does: they run the rank's code on stacks that are no rank's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import Session

THREADS = 2


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcc", tmp_path_factory.mktemp("workers"), "workers.c", "-pthread")


@pytest.mark.parametrize("place, depth", [("work", 2), ("compare", 3)])
def test_names_mean_the_rank_whose_code_the_thread_runs(
    session: Session, rankrun: Path, workers: Path, place: str, depth: int
) -> None:
    """What a rank says of itself (`own_rank`) tells whose values they are; compare() is called by the C library."""
    answers = session.run(
        f"""
        ask("break {place}")
        ask("run")
        stops = []
        while gdb.selected_inferior().pid and len(stops) < 50:
            names = [name for name in functions() if name in ("compare", "work", "begin")]
            stops.append([value("$_rank"), value("own_rank"), names, ask("info symbol calls"), ask("rank")])
            said = ask("next")
            stops[-1] += [gdb.selected_frame().find_sal().symtab is not None, value("calls"), said]
            ask("continue")
        tell("stops", stops)
        tell("hits", [value("$_rank_hits(1, %d)" % rank) for rank in range({RANKS})])
        """,
        "--args",
        rankrun,
        "-n",
        RANKS,
        workers,
    )
    stops = answers["stops"]
    assert answers["hits"] == [THREADS] * RANKS and len(stops) == THREADS * RANKS, answers.output
    for rank, own, names, _, why, has_line, _, said in stops:
        assert rank == own and names == ["compare", "work", "begin"][-depth:], (names, answers.output)
        assert re.search(r"because the stopped thread \d+ runs its code", why) and has_line, (why, said)
    assert sorted(re.findall(r"rank (\d+) made (\d+)", answers.output)) == [
        (str(r), str(THREADS)) for r in range(RANKS)
    ]
