"""Frames that are no function's: GDB has a word for each, in backtraces of ranks too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import Session


@pytest.mark.parametrize("options", [(), ("-DALTERNATE",)], ids=["own-stack", "alternate-stack"])
def test_the_delivery_of_a_signal(session: Session, rankrun: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    handler = compile_program("rankcc", tmp_path, "handler.c", *options)
    answers = session.run(
        """
gdb.execute("handle SIGUSR2 nostop noprint pass")
gdb.execute("break handler")
gdb.execute("run")
rank = value("$_rank")
tell("stacks", [ask(command).splitlines() for command in ("bt", f"rank bt {rank}")])
tell("plain", ask("bt -no-filters").splitlines())
ask(f"rank {(rank + 1) % 3}")
ask(f"rank {rank}")
tell("again", ask("bt").splitlines())
""",
        "--args",
        rankrun,
        "-n",
        RANKS,
        handler,
    )
    plain = [line for line in answers["plain"] if "<signal handler called>" in line]
    assert len(plain) == 1 and plain[0].startswith("#1  <signal handler called>")
    bt, rank_bt = answers["stacks"]
    assert answers["again"] == bt
    # GDB puts the parentheses of arguments behind every frame that a filter has seen.
    assert [line.removesuffix(" ()") for line in bt if line.startswith("#1 ")] == plain
    assert [line for line in rank_bt if line.startswith("#1 ")] == plain
