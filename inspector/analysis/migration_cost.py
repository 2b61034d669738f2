"""What migrating a rank would cost if its runtime sent less: page by page, against the pristine originals.

Takes a `Job` and the ranks' payload; reads every page that would move. A page is zero, the same as the original's at
its place, the same as another rank's at its place, or the rank's alone. Pointers that were rewritten to name the copy
don't count: any process of the job can rewrite them. Predicted times are of a link's bandwidth and latency alone:
packing is not counted.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable, UsageError
from pieglobalsfind.model import Placement, Rank, Rebase, Region

from ..job.job import Job
from ..terminal.progress import through
from .payload import Payload

PAGE = 4096
ZERO = bytes(PAGE)
WORD = struct.Struct("<Q")
CHUNK = 1 << 20  # bytes that are read at once
FASTEST, SLOWEST = 10.0**15, 1000.0  # bytes per second, seconds
RATES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}

WAYS = ("now", "shared_code", "used_stack", "differing", "smallest")

Key = tuple[str, int]  # a place that ranks have in common: an object, the heap or the stack, and the page's number


@dataclass(frozen=True)
class Network:
    """`bandwidth` in bytes per second, `latency` in seconds."""

    bandwidth: float = 12.5e9
    latency: float = 2e-6

    def seconds(self, size: int) -> float:
        """Return the time to send `size` bytes."""
        return self.latency + size / self.bandwidth


@dataclass(frozen=True)
class WhatIf:
    """One rank's bytes: as packed now, and under each saving alone; `smallest` has all of them.

    `zero`, `original` and `common` are bytes in pages that are zero, as in the original, or as another rank has them;
    of `unread` that is unknown, so they count as differing.
    """

    rank: int
    now: int
    shared_code: int  # if code and constants were mapped from the file
    used_stack: int  # if the unused part of the stack stayed behind
    differing: int  # if only pages went that are not zero, nor the original's with its pointers rewritten
    smallest: int
    zero: int
    original: int
    common: int
    unread: int


@dataclass(frozen=True)
class Page:
    """`size` is what of it moves. Of pages that can't be read, some hundred are one."""

    key: Key
    size: int
    digest: Optional[bytes]  # b"": zero, None: it can't be read
    is_original: bool


def parse_bandwidth(text: str) -> float:
    """`12.5GB/s`, `100Gb/s` (bits), as bytes per second."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([KMGT]?)(B|b)(?:/s|ps)", text.strip())
    rate = float(match[1]) * RATES[match[2]] / (1 if match[3] == "B" else 8) if match else 0.0
    if not 1 <= rate <= FASTEST:
        raise UsageError(f"--bandwidth takes 1B/s to 1000TB/s, and not {text!r}", "for instance 12.5GB/s, or 100Gb/s")
    return rate


def parse_latency(text: str) -> float:
    """`2us` in seconds."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(ns|us|ms|s)", text.strip())
    latency = float(match[1]) * TIMES[match[2]] if match else -1.0
    if not 0 <= latency <= SLOWEST:
        raise UsageError(f"--latency takes a time of up to 1000s, and not {text!r}", "for instance 2us or 0.5ms")
    return latency


def what_if(job: Job, payload: tuple[Payload, ...]) -> tuple[WhatIf, ...]:
    """The savings for every rank that is here."""
    ranks = {rank.rank: rank for rank in job.present}
    pages = {sizes.rank: list(pages_of(job, ranks[sizes.rank], sizes)) for sizes in through(payload, "pages")}
    users = Counter((page.key, page.digest) for rank_pages in pages.values() for page in rank_pages if page.digest)
    return tuple(_savings(sizes, pages[sizes.rank], users) for sizes in payload)


def _savings(payload: Payload, pages: list[Page], users: Counter[tuple[Key, bytes]]) -> WhatIf:
    code = payload.code + payload.rodata
    zero = sum(page.size for page in pages if page.digest == b"")
    original = sum(page.size for page in pages if page.digest and page.is_original)
    common = sum(page.size for page in pages if page.digest is not None and users[page.key, page.digest] > 1)
    return WhatIf(
        payload.rank,
        payload.total,
        payload.total - code,
        payload.total - payload.stack_unused,
        payload.total - zero - original,
        payload.total - payload.stack_unused - zero - original,
        zero,
        original,
        common,
        sum(page.size for page in pages if page.digest is None),
    )


# ---- pages ----


def pages_of(job: Job, rank: Rank, payload: Payload) -> Iterator[Page]:
    """What would move of the rank, in pages; the unused stack, which is counted as a whole, is left out."""
    for placement in rank.placements:
        if (
            isinstance(placement, Rebase)
            and placement.object is not None
            and job.table.objects[placement.object].privatized
        ):
            elf_object = job.table.objects[placement.object]
            for segment in elf_object.segments:
                if not segment.writable and job.translator.is_of_file(placement.copy + segment.offset):
                    continue
                start, original = placement.copy + segment.offset, elf_object.base + segment.offset
                place = (elf_object.path, segment.offset)
                yield from compared(job, start, segment.memory_size, original, place, rank.placements)
    if isinstance(rank.heap, Region):
        yield from compared(job, rank.heap.start, rank.heap.size, None, ("heap", 0))
    if isinstance(rank.stack, Region):
        start = rank.stack.start + payload.stack_unused
        yield from compared(job, start, rank.stack.end - start, None, ("stack", 0))


def compared(
    job: Job, start: int, size: int, original: Optional[int], place: Key, moved: tuple[Placement, ...] = ()
) -> Iterator[Page]:
    """The pages of [start, start+size), the first and the last as far as they belong to it; `moved`: what rewritten
    pointers name."""
    for at in range(start, start + size, CHUNK):
        length = min(CHUNK, start + size - at)
        data = read(job, at, length)
        pristine = None if original is None else read(job, original + at - start, length)
        if data is None:
            yield Page((place[0], place[1] + at - start), length, None, False)
            continue
        position = 0
        while position < length:
            part = min(PAGE - (at + position) % PAGE, length - position)
            content = data[position : position + part]
            same = pristine is not None and is_rewritten(
                pristine[position : position + part], content, -(at + position) % WORD.size, moved
            )
            digest = b"" if content == ZERO[:part] else hashlib.blake2b(content, digest_size=16).digest()
            yield Page((place[0], place[1] + at + position - start), part, digest, same)
            position += part


def is_rewritten(original: bytes, content: bytes, first: int, moved: tuple[Placement, ...]) -> bool:
    """Whether `content` is `original`, but for aligned words (from byte `first` on) that now name the rank's copies."""
    if original == content:
        return True
    restored = bytearray(content)
    for at in range(first, len(original) - WORD.size + 1, WORD.size):
        if original[at : at + WORD.size] == content[at : at + WORD.size]:
            continue
        (old,), (new,) = WORD.unpack_from(original, at), WORD.unpack_from(content, at)
        if not any(isinstance(rebase, Rebase) and is_moved(rebase, old, new) for rebase in moved):
            return False
        restored[at : at + WORD.size] = original[at : at + WORD.size]
    return restored == original


def is_moved(rebase: Rebase, old: int, new: int) -> bool:
    """Whether `old` names what was copied, its end included, and `new` the same place of the copy."""
    return rebase.original <= old <= rebase.original + rebase.size and new - old == rebase.copy - rebase.original


def read(job: Job, address: int, size: int) -> Optional[bytes]:
    """Read memory, or return None."""
    try:
        return job.target.read(address, size)
    except MemoryUnreadable:
        return None
