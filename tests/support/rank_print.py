"""What `rank print` says of each rank, from the text of its answers."""

from __future__ import annotations


def is_same(together: str, alone: str) -> bool:
    """Whether all that was said of ranks alone is what was said of them together with the others."""
    expected, found = by_rank(alone), by_rank(together)
    return bool(expected) and all(found.get(rank) == value for rank, value in expected.items())


def by_rank(text: str) -> dict[int, str]:
    """What can't be had is printed once for all ranks."""
    lines = [line.split(":", 1) for line in text.splitlines()]
    return {rank: value for ranks, value in lines for rank in numbers(ranks)}


def numbers(ranks: str) -> list[int]:
    """The ranks of a set such as 0-2,5."""
    ends = [part.partition("-") for part in ranks.split(",")]
    return [number for first, _, last in ends for number in range(int(first), int(last or first) + 1)]
