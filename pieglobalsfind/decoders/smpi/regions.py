"""The ranks' own data segments under `smpi/privatization:mmap`, each of which is mapped for good at a place of its own.

Takes ranks' actors and the program; gives redirections of the program's data. SMPI maps the segment of one rank at the
program's own place, too; whose that is may change at any message, and is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from pieglobalsfind.decoders.smpi.actors import Actor
from pieglobalsfind.decoders.smpi.library import WORD, SimgridLibrary, Words, words_of
from pieglobalsfind.elf.file import PF_W, PT_GNU_RELRO
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.model import Object, Redirect, Region
from pieglobalsfind.target import MemoryMapping, Target

EXTENSION = "_ZN7simgrid4smpi8ActorExt12EXTENSION_IDE"
MOST_EXTENSIONS = 256
RECORD_WORDS, FEWEST_WORDS = 48, 8


def data_segment(loaded: LoadedElf, maps: Sequence[MemoryMapping]) -> Region:
    """What SMPI maps for each rank: from the first page after what the loader protects to the end of .bss."""
    written = [segment for segment in loaded.segments if segment.flags & PF_W]
    protected = [header.end for header in loaded.program_headers if header.type == PT_GNU_RELRO]
    if not written:
        return Region(0, 0)
    starts = {mapping.start for mapping in maps}
    for page in loaded.header.processor.page_sizes:
        start = max([written[0].vaddr & -page, *(-(-end // page) * page for end in protected)]) + loaded.load_bias
        end = -(-written[-1].end // page) * page + loaded.load_bias
        if start in starts and start < end:
            return Region(start, end - start)
    return Region(0, 0)


def redirections(
    target: Target, maps: Sequence[MemoryMapping], library: SimgridLibrary, actors: Mapping[int, Actor], program: Object
) -> dict[int, tuple[Redirect, ...]]:
    """By rank; {} where the program's data is one for all."""
    segment = data_segment(LoadedElf(target.read, program.base), maps)
    if not segment.size:
        return {}
    starts = {
        mapping.start: mapping for mapping in maps if mapping.writable and mapping.end - mapping.start >= segment.size
    }
    regions = _regions(target, library, actors)
    return {
        rank: (Redirect(program.index, segment.start, segment.size, address, 0),)
        for rank, address in regions.items()
        if address in starts and address != segment.start
    }


def _regions(target: Target, library: SimgridLibrary, actors: Mapping[int, Actor]) -> dict[int, int]:
    """By rank, where its region is: SMPI's record of an actor has it after the actor's public half."""
    place = library.symbol(EXTENSION)
    (number,) = words_of(target, [place], 1, 1)[0] or (MOST_EXTENSIONS,)
    if not place or number >= MOST_EXTENSIONS:
        return {}
    halves = {rank: at for rank, actor in actors.items() if (at := _public_half(actor)) is not None}
    slots = [actors[rank].words[at] + WORD * number for rank, at in halves.items()]  # of as many as SimGrid has made
    records = [words_there[0] if words_there else 0 for words_there in words_of(target, slots, 1, 1)]
    contents = words_of(target, records, RECORD_WORDS, FEWEST_WORDS)
    named = {
        rank: _after(words, actors[rank].address + WORD * at) for (rank, at), words in zip(halves.items(), contents)
    }
    regions = words_of(target, list(named.values()), 1, 1)
    return {rank: words[0] for rank, words in zip(named, regions) if words}


def _public_half(actor: Actor) -> Optional[int]:
    """Which word of an actor its public half begins with: {extensions: begin, end, end of room}, the actor itself."""
    words = actor.words
    for at in range(3, len(words)):
        begin, end, room = words[at - 3 : at]
        if words[at] == actor.address and 0 < begin < end <= room and end - begin <= WORD * MOST_EXTENSIONS:
            return at - 3
    return None


def _after(words: Words, address: int) -> int:
    """The word after the one that is an address, 0 if none is."""
    return next((following for word, following in zip(words, words[1:]) if word == address), 0)
