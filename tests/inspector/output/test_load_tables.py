"""What the sentences of `load` claim of ranks whose load was sampled: chance makes none of them slow."""

from __future__ import annotations

import random

import pytest

from inspector.load.loads import SAMPLED, Loads, RankLoad
from inspector.output.load_tables import sentences
from pieglobalsfind.model import Absent

UNKNOWN = Absent("not counted")


def sampled(weights: list[float], looks: int, chance: random.Random) -> Loads:
    """What so many looks find of ranks that run for such shares of the time, one at a time."""
    ran = chance.choices(range(len(weights)), weights, k=looks)
    ranks = tuple(RankLoad(rank, (0, 0), ran.count(rank) / looks, UNKNOWN, UNKNOWN) for rank in range(len(weights)))
    return Loads(SAMPLED, "", 1.0, ranks, (), UNKNOWN, looks=looks)


@pytest.mark.parametrize("ranks", [2, 8, 64])
@pytest.mark.parametrize("looks", [4, 37, 200])
def test_chance_makes_no_rank_slow(ranks: int, looks: int) -> None:
    """Of ranks that run equally long one is named at most as often as the promised 95 of 100 times allow."""
    seed = 7
    chance = random.Random(seed)
    said = [next(sentences(sampled([1.0] * ranks, looks, chance))) for _ in range(200)]
    named = [sentence for sentence in said if not sentence.startswith(f"{looks} looks show no rank")]
    assert len(named) <= 10, (seed, named)


def test_a_slow_rank_is_named() -> None:
    """Half of all looks see one of 8 ranks."""
    first = next(sentences(sampled([7.0, *[1.0] * 7], 200, random.Random(7))))
    assert first.startswith("rank 0 ran ") and "times as long as the mean of 0.125 s" in first
