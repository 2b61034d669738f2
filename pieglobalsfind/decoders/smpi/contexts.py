"""Stacks and saved registers of SimGrid's actors, by what their contexts hold, for each way of switching.

Takes actors with their contexts; gives for each its stack, and where its registers are saved. A context has the stack's
lowest address, then the factory that made it, then what its kind saves: the stack pointer (raw, boost) or a ucontext_t
that names the stack. Actors that are kernel threads have none of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.decoders.smpi.actors import Actor, is_factory
from pieglobalsfind.decoders.smpi.library import SimgridLibrary, words_of
from pieglobalsfind.machine.processor import Layout, Processor
from pieglobalsfind.model import OWN_THREAD, Absent, Region
from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import MemoryMapping, Target, read_or_none

CONTEXTS = {"boost": "fcontext", "ucontext": "ucontext"}  # the names of kinds of saved contexts
# The default size; its name until 3.33, and since.
STACK_SIZE = (
    "_ZN7simgrid6kernel7context10stack_sizeE",
    "_ZN7simgrid6kernel7context7Context10stack_sizeE",
)
SMALLEST_STACK, LARGEST_STACK = 1 << 12, 1 << 32  # bytes
SIZE_WORDS = 32  # of an actor that are searched for the size of its stack
UNKNOWN = Absent("its context does not have the form that is known")
NO_SIZE = Absent("the size of its stack is unknown")


@dataclass(frozen=True)
class Saved:
    """An actor's stack, the address of its saved registers, and where the word is that holds that (0: none does)."""

    stack: Union[Region, Absent]
    context: Union[int, Absent]
    context_at: int = 0


def saved_contexts(
    target: Target, maps: Sequence[MemoryMapping], library: SimgridLibrary, actors: Sequence[Actor]
) -> list[Saved]:
    """Of each actor, in their order."""
    swapped = [actor for actor in actors if actor.kind != "thread"]
    factory = _factory(target, library, swapped[0]) if swapped else None
    sizes = _stack_sizes(target, library, actors)
    mapped = writable(maps)
    contexts = []
    for actor, size in zip(actors, sizes):
        if actor.kind == "thread":
            contexts.append(Saved(OWN_THREAD, OWN_THREAD))
        else:
            contexts.append(_saved(actor, factory, size, mapped))
    return _with_pointers(actors, contexts, factory)


def layouts(processor: Processor, kind: str) -> Sequence[Layout]:
    """How contexts of a kind may save registers; a raw one leaves the stack pointer in the context."""
    if kind == "thread":
        return ((),)
    return processor.raw_contexts or ((),) if kind == "raw" else processor.contexts[CONTEXTS[kind]]


def layout_of(
    target: Target, maps: Sequence[MemoryMapping], processor: Processor, kind: str, saved: Sequence[Saved]
) -> Layout:
    """How a kind of contexts saves registers: of several layouts the one by which most return to code."""
    code = [(mapping.start, mapping.end) for mapping in maps if mapping.executable]
    contexts = [context.context for context in saved if isinstance(context.context, int)]

    def returns(layout: Layout) -> int:
        place = next((rule.offset for rule in layout if rule.dwarf_register == processor.pc), 0)
        words = words_of(target, [context + place for context in contexts], 1, 1)
        return sum(range_at(code, word[0]) is not None for word in words if word)

    possible = layouts(processor, kind)
    return possible[0] if len(possible) == 1 else max(possible, key=returns)


def _factory(target: Target, library: SimgridLibrary, actor: Actor) -> Optional[int]:
    """Which word of contexts leads to their factory."""
    words = actor.context_words
    objects = words_of(target, [word if word % 8 == 0 else 0 for word in words], 1, 1)
    return next((at for at, word in enumerate(objects) if at > 1 and is_factory(library, word)), None)


def _stack_sizes(target: Target, library: SimgridLibrary, actors: Sequence[Actor]) -> list[int]:
    """Of each actor in bytes, 0 if unknown: an actor keeps its own, an `unsigned`; most keep the default."""
    default = _default_size(target, library)
    if not default:
        return [0] * len(actors)
    halves = [
        [half for word in actor.words[:SIZE_WORDS] for half in (word & 0xFFFFFFFF, word >> 32)] for actor in actors
    ]
    places = Counter(at for row in halves for at, half in enumerate(row) if half == default)
    if not places:
        return [0] * len(actors)
    at = min(places, key=lambda place: (-places[place], place))
    sizes = (row[at] if at < len(row) else 0 for row in halves)
    return [size if SMALLEST_STACK <= size < LARGEST_STACK else 0 for size in sizes]


def _default_size(target: Target, library: SimgridLibrary) -> int:
    for name in STACK_SIZE:
        place = library.symbol(name)
        if place:
            return int.from_bytes(read_or_none(target, place, 4) or b"", "little")
    return 0


def writable(maps: Sequence[MemoryMapping]) -> list[tuple[int, int]]:
    """(start, end) of writable memory, ascending, with neighbours joined: stacks may lie in the heap."""
    spans: list[tuple[int, int]] = []
    for mapping in maps:
        if not (mapping.readable and mapping.writable):
            continue
        if spans and spans[-1][1] == mapping.start:
            spans[-1] = spans[-1][0], mapping.end
        else:
            spans.append((mapping.start, mapping.end))
    return spans


def _saved(actor: Actor, factory: Optional[int], size: int, mapped: Sequence[tuple[int, int]]) -> Saved:
    """The stack; the registers' place only of a ucontext, which names its stack itself."""
    words = actor.context_words
    if factory is None or not 1 < factory < len(words):
        return Saved(UNKNOWN, UNKNOWN)
    start = words[factory - 1]
    if actor.kind == "ucontext":
        at = next((at for at in range(factory + 1, len(words) - 4) if words[at + 2] == start and words[at + 4]), None)
        if at is None:
            return Saved(UNKNOWN, UNKNOWN)
        stack = _stack(start, words[at + 4], mapped)
        return Saved(stack, actor.context + 8 * at if isinstance(stack, Region) else UNKNOWN)
    stack = _stack(start, size, mapped)
    return Saved(stack, UNKNOWN)


def _stack(start: int, size: int, mapped: Sequence[tuple[int, int]]) -> Union[Region, Absent]:
    if not SMALLEST_STACK <= size < LARGEST_STACK:
        return NO_SIZE
    around = range_at(mapped, start)
    is_mapped = around is not None and start + size <= around[1]
    return Region(start, size) if is_mapped and start % 8 == 0 else UNKNOWN


def _with_pointers(actors: Sequence[Actor], contexts: Sequence[Saved], factory: Optional[int]) -> list[Saved]:
    """With the stack pointers of raw and boost contexts: the first word after the factory that is in the own stack.

    It is the same word of every context of a process.
    """
    places = Counter(at for actor, saved in zip(actors, contexts) for at in _pointers(actor, saved, factory))
    if not places:
        return list(contexts)
    at = min(places, key=lambda place: (-places[place], place))
    whole = []
    for actor, saved in zip(actors, contexts):
        pointer = actor.context_words[at] if at in _pointers(actor, saved, factory) else None
        whole.append(saved if pointer is None else Saved(saved.stack, pointer, actor.context + 8 * at))
    return whole


def _pointers(actor: Actor, saved: Saved, factory: Optional[int]) -> Iterator[int]:
    """Which words of a context may be its saved stack pointer."""
    if isinstance(saved.stack, Region) and factory is not None and actor.kind in ("raw", "boost"):
        for at in range(factory + 1, len(actor.context_words)):
            if actor.context_words[at] in saved.stack and actor.context_words[at] % 8 == 0:
                yield at
