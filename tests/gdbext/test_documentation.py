"""docs/gdb.md names every command, function and setting that there is, and none that there is not."""

from __future__ import annotations

import re

from tests.support.gdb.session import Session
from tests.support.running import ROOT

GENERIC = {"rank"}


def test_every_command_is_documented(session: Session) -> None:
    answers = session.run('tell("rank", ask("help rank"))\ntell("set", ask("help set rank"))\n')
    commands = set(re.findall(r"^(rank \w+)", answers["rank"], re.MULTILINE))
    settings = set(re.findall(r"^set (rank [\w-]+)", answers["set"], re.MULTILINE))
    page = (ROOT / "docs" / "gdb.md").read_text()
    documented = set(re.findall(r"`(?:set )?(rank [a-z][\w-]*)", page))
    aliases = {"rank backtrace"}
    assert commands - aliases | settings == documented
    for function in (
        "$_rank",
        "$_rank_count",
        '$_rankaddr("symbol", N)',
        "$_rank_of(ADDRESS)",
        "$_rank_in(",
        "$_rank_hits(",
    ):
        assert function in page
