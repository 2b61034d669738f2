"""SimGrid's actors, which SMPI's ranks are: those in the list of its engine, each with its context.

Takes a target and its library; gives actors by their numbers (pids). The engine keeps a `std::map<long, ActorImpl*>`
(libstdc++: red-black tree); where in the engine is found by what such a map must hold. An actor is believed if a
context is a member of it that has the actor as its own member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.decoders.smpi.library import SimgridLibrary, Words, words_of
from pieglobalsfind.target import Target, word_or_none

ENGINE = "_ZN7simgrid6kernel10EngineImpl9instance_E"
ENGINE_WORDS = 160  # that are searched for the list
ACTOR_WORDS, CONTEXT_WORDS = 128, 40
FEWEST_WORDS = 12
MOST_ACTORS = 1 << 21
NODE_WORDS = 6  # colour, parent, left, right, number, actor
KINDS = {"Raw": "raw", "Boost": "boost", "U": "ucontext", "Thread": "thread"}
SCHEDULED = ("", "Serial", "Parallel")
PREFIX, SUFFIX = "N7simgrid6kernel7context", "ContextE"


@dataclass(frozen=True)
class Actor:
    """An actor: its number, its ActorImpl, its context and the context's kind; `words` are the ActorImpl's."""

    number: int
    address: int
    words: Words
    kind: str
    context: int
    context_words: Words


def find_actors(target: Target, library: SimgridLibrary) -> Optional[list[Actor]]:
    """In the order of their numbers; [] if there are none now, None if the engine's list does not validate."""
    place = library.symbol(ENGINE)
    engine = word_or_none(target, place) if place else None
    if engine is None:
        return None
    if not engine:
        return []
    (words,) = words_of(target, [engine], ENGINE_WORDS, FEWEST_WORDS)
    is_empty = is_damaged = False
    for at in range(len(words) - 4):
        header, count = engine + 8 * at, words[at + 4]
        if words[at] >> 32 == 0 and words[at] <= 1 and 0 < count <= MOST_ACTORS and words[at + 1]:
            tree = _Tree(words[at + 1], header, count)
            if _has_an_actor(target, library, tree):
                actors = _actors(target, library, tree)
                if actors is not None:
                    return actors
                is_damaged = True
        is_empty |= words[at : at + 5] == (0, 0, header, header, 0)
    return [] if is_empty and not is_damaged else None


@dataclass(frozen=True)
class _Tree:
    """A std::map: its root, its header, and how many nodes it says it has."""

    root: int
    header: int
    count: int


def _has_an_actor(target: Target, library: SimgridLibrary, tree: _Tree) -> bool:
    """Whether a map may be the list of actors: its root's value is an actor with a context."""
    (root,) = words_of(target, [tree.root], NODE_WORDS, NODE_WORDS)
    return bool(root) and root[1] == tree.header and bool(_with_contexts(target, library, {root[4]: root[5]}))


def _actors(target: Target, library: SimgridLibrary, tree: _Tree) -> Optional[list[Actor]]:
    """All of a map; None unless each of its values is an actor with a context."""
    listed = _values(target, tree)
    if listed is None:
        return None
    actors = _with_contexts(target, library, listed)
    return actors if len(actors) == len(listed) else None


def _values(target: Target, tree: _Tree) -> Optional[dict[int, int]]:
    """Actors by their numbers; None unless there are as many as the map says, each reached from its own parent."""
    address_of: dict[int, int] = {}
    level = [(tree.root, tree.header)]
    while level:
        nodes = words_of(target, [node for node, _ in level], NODE_WORDS, NODE_WORDS)
        below: list[tuple[int, int]] = []
        for (address, parent), words in zip(level, nodes):
            if not words or words[1] != parent or words[4] in address_of:
                return None
            address_of[words[4]] = words[5]
            below += [(child, address) for child in words[2:4] if child]
        if len(address_of) + len(below) > tree.count:
            return None
        level = below
    return dict(sorted(address_of.items())) if len(address_of) == tree.count else None


def _with_contexts(target: Target, library: SimgridLibrary, listed: dict[int, int]) -> list[Actor]:
    """The actors with a context that points back to them."""
    addresses = list(listed.values())
    actors = words_of(target, addresses, ACTOR_WORDS, FEWEST_WORDS)
    found_at = (_context_at(target, library, address, words) for address, words in zip(addresses, actors))
    at = next((place for place in found_at if place is not None), None)
    if at is None:
        return []
    contexts = words_of(target, [actor[at] if at < len(actor) else 0 for actor in actors], CONTEXT_WORDS, FEWEST_WORDS)
    decoded = []
    for number, address, words, context in zip(listed, addresses, actors, contexts):
        kind = kind_of(library, context)
        if kind and address in context[1:]:
            decoded.append(Actor(number, address, words, kind, words[at], context))
    return decoded


def _context_at(target: Target, library: SimgridLibrary, address: int, words: Words) -> Optional[int]:
    """Which word of an actor leads to its own context: another one may lead to a context that is not the actor's."""
    places = [at for at, word in enumerate(words) if word and word % 8 == 0]
    classes = words_of(target, [words[at] for at in places], 1, 1)
    places = [at for at, first in zip(places, classes) if kind_of(library, first)]
    contexts = words_of(target, [words[at] for at in places], CONTEXT_WORDS, FEWEST_WORDS)
    return next((at for at, context in zip(places, contexts) if address in context[1:]), None)


def kind_of(library: SimgridLibrary, words: Sequence[int]) -> str:
    """The kind of context that an object is, "" if it is none."""
    name = library.class_of(words[0]) if words else ""
    if not name.startswith(PREFIX) or not name.endswith(SUFFIX):
        return ""
    plain = name[len(PREFIX) : -len(SUFFIX)].lstrip("0123456789")
    return next((kind for name, kind in KINDS.items() if any(plain == before + name for before in SCHEDULED)), "")


def is_factory(library: SimgridLibrary, words: Words) -> bool:
    """Whether an object is what SimGrid makes contexts with."""
    name = library.class_of(words[0]) if words else ""
    return name.startswith(PREFIX) and name.endswith("FactoryE")
