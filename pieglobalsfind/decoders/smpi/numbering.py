"""Which MPI rank an actor is, and rank numbers in a process that may hold several instances of SMPI.

Takes actors; their identities are the properties that SMPI gave them, a `std::unordered_map<std::string, std::string>`
of libstdc++ that is set before an actor runs. Gives each a number of its own, and a sentence where that number is not
its rank in MPI_COMM_WORLD.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.smpi.actors import Actor
from pieglobalsfind.decoders.smpi.library import words_of
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.target import Target, read_many

SEVERAL = "several MPI jobs are in this process, their ranks are numbered on: {}"
ACTORS = "these are actors of S4U, not MPI ranks: they are numbered by their pids, and have no globals of their own"
OTHERS = "{} of the process's actors are not MPI ranks, and are not listed"
TWICE = "two actors say that they are rank {} of {}: SimGrid's properties are damaged, or the job is changing"
RANK, INSTANCE = b"rank", b"instance_id"
MOST_PROPERTIES = 64
HIGHEST_RANK = 1 << 24
SHORT = 15  # characters that a std::string keeps within itself
LONGEST = 256  # of an instance's name
TABLE_WORDS = 4  # buckets, their number, first node, number of nodes
NODE = struct.Struct("<QQQ16sQQ16s")  # next, key: {text, length, text if short}, value


@dataclass(frozen=True)
class SmpiRank:
    """An instance of SMPI (one launch, of which a process may have several) and a rank in it."""

    instance: str
    rank: int


def identities(target: Target, actors: Sequence[Actor]) -> list[Optional[SmpiRank]]:
    """Of each actor, in their order."""
    tables = words_of(target, [actor.words[0] for actor in actors], TABLE_WORDS, TABLE_WORDS)
    counts = [table[3] if table and table[3] <= MOST_PROPERTIES else 0 for table in tables]
    nodes = {index: table[2] for index, table in enumerate(tables) if counts[index]}
    properties: list[dict[bytes, bytes]] = [{} for _ in actors]
    for step in range(max(counts, default=0)):
        nodes = {index: node for index, node in nodes.items() if node and step < counts[index]}
        data = read_many(target, [(node, NODE.size) for node in nodes.values()])
        following = {}
        for (index, node), words in zip(nodes.items(), data):
            if words is not None:
                following[index] = _take(target, node, words, properties[index])
        nodes = following
    return [_identity(mapping) for mapping in properties]


def _take(target: Target, address: int, data: bytes, properties: dict[bytes, bytes]) -> int:
    """Keep the property if it is one of ours; the address of the next node."""
    following, key_at, key_length, key, value_at, value_length, value = NODE.unpack(data)
    if key_at == address + 24 and key_length <= SHORT and key[:key_length] in (RANK, INSTANCE):
        if value_at == address + 56 and value_length <= SHORT:
            properties[key[:key_length]] = value[:value_length]
        elif value_length <= LONGEST:
            try:
                properties[key[:key_length]] = target.read(value_at, value_length)
            except MemoryUnreadable:
                properties.pop(key[:key_length], None)
    return int(following)


def _identity(properties: dict[bytes, bytes]) -> Optional[SmpiRank]:
    text = properties.get(RANK, b"")
    if not text.isdigit() or int(text) > HIGHEST_RANK:
        return None
    instance = properties.get(INSTANCE, b"").decode("utf-8", "replace")
    return SmpiRank("".join(character for character in instance if character.isprintable()), int(text))


@dataclass(frozen=True)
class Numbers:
    """By number, the index of the actor; `first` is by instance the number of its rank 0, `sizes` its ranks."""

    actors: dict[int, int]
    first: dict[str, int]
    sizes: dict[str, int]
    warnings: tuple[str, ...]

    @property
    def are_ranks(self) -> bool:
        """Return whether the actors are MPI ranks."""
        return bool(self.first)


def number(actors: Sequence[Actor], identities: Sequence[Optional[SmpiRank]]) -> Numbers:
    """Ranks in ascending order; of a process without any rank, its actors."""
    ranks = [(smpi_rank, index) for index, smpi_rank in enumerate(identities) if smpi_rank is not None]
    if not ranks:
        return Numbers({actor.number: index for index, actor in enumerate(actors)}, {}, {}, (ACTORS,) if actors else ())
    sizes: dict[str, int] = {}
    for smpi_rank, _ in ranks:
        sizes[smpi_rank.instance] = max(sizes.get(smpi_rank.instance, 0), smpi_rank.rank + 1)
    first, total = dict[str, int](), 0
    for name, size in sizes.items():
        first[name] = total
        total += size
    numbered: dict[int, int] = {}
    warnings = []
    for smpi_rank, index in ranks:
        place = first[smpi_rank.instance] + smpi_rank.rank
        if place in numbered:
            warnings.append(TWICE.format(smpi_rank.rank, smpi_rank.instance))
        numbered.setdefault(place, index)
    if len(sizes) > 1:
        parts = (f"{name} has {first[name]}-{first[name] + size - 1}" for name, size in sizes.items())
        warnings.append(SEVERAL.format(", ".join(parts)))
    if len(ranks) < len(actors):
        warnings.append(OTHERS.format(len(actors) - len(ranks)))
    return Numbers(dict(sorted(numbered.items())), first, sizes, tuple(dict.fromkeys(warnings)))
