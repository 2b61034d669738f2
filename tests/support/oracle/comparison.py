"""What an oracle needs whichever debugger it asks: which questions are meant, and that they could fail at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.support.host.plan import Answers, Query
from tests.support.oracle.program import RANKS, Program


def asked(program: Program, frame: str) -> list[Query]:
    """Those in `frame`, "" for the stack as a whole."""
    return [query for query in program.queries if query.frame == frame]


def check_that_processes_differ(
    program: Program, native: Answers, normalize: Callable[[str, Iterable[str]], str]
) -> None:
    """A wrong rank would be noticed: processes answer differently, and stand where the questions are meant."""
    telling = 0
    for query in program.queries:
        texts = [normalize(native.text(rank, query), program.sources) for rank in range(RANKS)]
        assert not any(text.startswith("error: no frame of") for text in texts), f"{query}: {texts}"
        telling += len(set(texts)) > 1
    assert telling >= len(program.queries) // 4
