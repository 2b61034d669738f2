"""Pointers that came in a message lead into another rank: each is found, with whose it is and what it should be."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

import pieglobalsfind
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN

SENT = {
    "sent_function": "rank 0's code, step+0x0",
    "box.sent_address": "rank 0's data, count+0x0",
    "sent_block": "rank 0's heap",
    "held[1].function": "rank 0's code, step+0x0",
    "held[1].address": "rank 0's data, count+0x0",
    "local.function": "rank 0's code, step+0x0",
    "local.address": "rank 0's data, count+0x0",
}


@pytest.mark.parametrize("method", ["fs", "pip"])
def test_the_first_rank_has_the_original(start_ranks: StartRanks, method: str) -> None:
    """What leads there is stale, or another rank's; each is reported once."""
    found = sent(start_ranks(SOURCES / "sent.c", "--method", method, ranks=3).pid)
    assert sorted((one["rank"], one["symbol"]) for one in found) == sorted(
        (rank, name) for rank in (1, 2) for name in SENT
    )


def test_what_was_sent_is_found(start_ranks: StartRanks) -> None:
    job = start_ranks(SOURCES / "sent.c", ranks=3)
    found = sent(job.pid)
    assert sorted((one["rank"], one["symbol"]) for one in found) == sorted(
        (rank, name) for rank in (1, 2) for name in SENT
    )
    for one in found:
        assert one["verdict"] == "another rank's" and SENT[one["symbol"]] in one["evidence"]
    with pieglobalsfind.open(pid=job.pid) as looked_at:
        for one in found:
            assert looked_at.owner(int(one["new"], 16)).rank == 0
            if one["symbol"] == "sent_block":
                assert one["right"] is None
            else:
                owner = looked_at.owner(int(one["right"], 16))
                assert (owner.rank, owner.original) == (one["rank"], looked_at.owner(int(one["new"], 16)).original)


def sent(pid: int) -> list[dict[str, Any]]:
    """The findings about words that name another rank or an original."""
    return [one for one in findings(pid) if one["verdict"] in ("another rank's", "stale")]


def findings(pid: int) -> list[dict[str, Any]]:
    """All of them."""
    command = [str(BIN / "inspector"), "pointers", str(pid), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def test_words_that_nothing_describes_are_told_apart(start_ranks: StartRanks) -> None:
    """They may be pointers: each is printed with where it leads; a number by its type is not."""
    pid = start_ranks(SOURCES / "sent.c", ranks=3).pid
    told = [one for one in findings(pid) if one["verdict"] == "untyped" and "rank 0's data" in one["evidence"]]
    assert [(one["rank"], one["object"]) for one in told] == [(1, "heap"), (2, "heap")]
    assert all("nothing says what it is; it leads to rank 0's data, count+0x0" in one["evidence"] for one in told)
