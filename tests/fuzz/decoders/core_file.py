"""Core files: memory that is described soundly, and threads whose notes are sound, are the true ones or absent."""

from __future__ import annotations

from contextlib import suppress

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.target import read_or_none
from pieglobalsfind.targets.core import CoreTarget
from tests.fuzz.patches import damaged, written
from tests.fuzz.scratch import ScratchFile
from tests.support.fabricate.core_file import File, Memory, Thread, core
from tests.support.fabricate.elf_file import HEADER, PAGE, PROGRAM_HEADER, shared_object

IMAGE = shared_object()[: 2 * PAGE]
MEMORY = (
    Memory(0x10000, PAGE, b"\x41" * PAGE),
    Memory(0x20000, 2 * PAGE, IMAGE),
    Memory(0x30000, 4 * PAGE, b""),
    Memory(0x7FFF00000000, PAGE, bytes(range(256)) * 16),
)
FILES = (File(0x20000, 0x22000, 0, "/no/such/program"), File(0x30000, 0x34000, 2, "/no/such/library.so"))
THREADS = tuple(Thread(100 + number, 0x1000 + number, 0x2000 + number) for number in range(3))
BYTES = core(MEMORY, FILES, THREADS)
HEADERS = HEADER + PROGRAM_HEADER * (len(MEMORY) + 1)
NOTE = 20 + 336 + 8  # of a thread: header and name, struct elf_prstatus
SCRATCH = ScratchFile()


def opened(content: bytes) -> CoreTarget:
    SCRATCH.write(content)
    return CoreTarget(SCRATCH.path)


TRUTH = {thread.tid: thread for thread in opened(BYTES).threads()}


def seeds() -> list[bytes]:
    """The first two bytes say how much is cut off; no damage, and some in headers and notes."""
    return [b"\0\0", b"\0\x40", *(b"\0\0" + written([(at, b"\x7f\x01")]) for at in range(0, HEADERS + 4 * NOTE, 24))]


def check(data: bytes) -> None:
    cut = int.from_bytes(data[:2], "little")
    content, wrong = damaged(BYTES, data[2:])
    kept = content[: max(len(content) - cut, 0)]
    try:
        target = opened(kept)
        maps, threads = target.maps(), target.threads()
    except RanklensError:
        return
    for mapping in maps[:16]:
        read_or_none(target, mapping.start, min(mapping.end - mapping.start, PAGE))
    with suppress(RanklensError):
        decode(target)
    if any(offset < HEADERS for offset in wrong):
        return
    check_memory(target, wrong)
    if not any(offset >= HEADERS for offset in wrong if offset < HEADERS + len(THREADS) * NOTE) and not cut:
        assert {thread.tid: thread for thread in threads} == TRUTH


def check_memory(target: CoreTarget, wrong: frozenset[int]) -> None:
    """Headers are sound: bytes that are not damaged are as they were, or can't be read."""
    at = HEADERS
    for memory in MEMORY:
        if not memory.data:
            continue
        at = BYTES.index(memory.data, at)
        if not any(at <= offset < at + len(memory.data) for offset in wrong):
            told = read_or_none(target, memory.start, len(memory.data))
            assert told in (None, memory.data), hex(memory.start)
