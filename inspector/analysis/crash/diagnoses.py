"""Which known diagnosis fits a crash: cause, evidence from the core file, and cure.

Takes the context of a crash; gives the first diagnosis whose evidence is there, or None. Ids are stable,
docs/diagnoses.md lists them.
"""

from __future__ import annotations

import signal as signals
import struct
from collections.abc import Callable, Iterator
from typing import Optional

from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.model import Region

from ...terminal.text import harmless
from ..method_diagnoses import BYTE_COPIES, OF_AMPI, REFUSED, Diagnosis
from .crash_context import CrashContext

FREES = ("free", "cfree", "realloc", "__libc_free", "__libc_realloc", "__GI___libc_free")
# What glibc prints of a block that its own allocator did not give, or whose neighbourhood was overwritten
NOT_ITS_OWN = ("munmap_chunk(): invalid pointer", "free(): invalid pointer", "double free or corruption (out)")
NOT_ITS_OWN_EITHER = ("free(): invalid size", "realloc(): invalid pointer", "munmap_chunk(): invalid size")
HEAPS = ("heap", "range")
THROWS = ("_Unwind_RaiseException", "__cxa_throw", "std::terminate()")
LOWEST_PAGE = 4096
BELOW_STACK = 1 << 20  # bytes below a stack: its guard, and what one frame may skip
LARGEST_FRAMES = 1 << 16  # bytes of libc's frames that are searched


def diagnose(context: CrashContext) -> Optional[Diagnosis]:
    """The first that fits."""
    diagnoses = (check(context) for check in CHECKS)
    return next((diagnosis for diagnosis in diagnoses if diagnosis is not None), None)


def foreign_free(context: CrashContext) -> Optional[Diagnosis]:
    """Likely, libc's free got a block of the runtime's allocator: its frames point into the rank's heap."""
    if context.rank is None or not context.message.startswith((*NOT_ITS_OWN, *NOT_ITS_OWN_EITHER)):
        return None
    depth = next((at for at, activation in enumerate(context.frames) if names_at(context, at) & set(FREES)), None)
    block = None if depth is None else block_of(context, depth)
    if depth is None or block is None:
        return None
    owner = context.job.translator.owner(block)
    caller = caller_text(context, depth)
    return Diagnosis(
        "foreign-free",
        REFUSED,
        "likely, libc's free got a block that the runtime's allocator gave: malloc and free of one block are two "
        "allocators'",
        f"{context.message}; free was called from {caller}, and its frames hold a pointer to rank {owner.rank}'s "
        f"{owner.kind}+{owner.offset:#x}, which nothing proves to be the block",
        "with AMPI link the hook module and set RANKDEBUG=malloc (docs/ampi.md); else free where it was allocated",
    )


def names_at(context: CrashContext, depth: int) -> set[str]:
    """The functions of libc that one frame is in."""
    calls = context.calls_at[depth]
    return {call.function for call in calls if call.library.rpartition("/")[2].startswith("libc.so")}


def caller_text(context: CrashContext, depth: int) -> str:
    """`libgfortran.so.5 (rank 0's copy)`: the file that the caller of a frame is in."""
    if depth + 1 >= len(context.frames):
        return "an unknown caller"
    owner = context.job.translator.owner(context.frames[depth + 1].lookup)
    path = owner.path if owner.object is None else context.job.table.objects[owner.object].path
    whose = f" (rank {owner.rank}'s copy)" if owner.rank is not None else ""
    return f"{harmless(path.rpartition('/')[2])}{whose}"


def block_of(context: CrashContext, depth: int) -> Optional[int]:
    """An address in the rank's heap that the frames from the signal down to free hold."""
    rank = context.rank
    for value in words_of(context, depth):
        owner = context.job.translator.owner(value)
        if rank is not None and owner.rank == rank.rank and owner.kind in HEAPS:
            return value
    return None


def words_of(context: CrashContext, depth: int) -> Iterator[int]:
    """What free and the functions that it called have in saved registers and on the stack, outermost first."""
    frames = context.frames[: depth + 1]
    for frame in reversed(frames):
        yield from (frame.registers[number] for number in frame.processor.call_preserved if number in frame.registers)
    start, end = frames[0].stack_pointer, frames[-1].cfa
    try:
        data = context.job.target.read(start, min(max(end - start, 0), LARGEST_FRAMES) & -8)
    except MemoryUnreadable:
        return
    yield from reversed(struct.unpack(f"<{len(data) // 8}Q", data))


def _stack_overflow(context: CrashContext) -> Optional[Diagnosis]:
    stack = context.rank.stack if context.rank is not None else None
    address = context.address
    if context.rank is None or not isinstance(stack, Region) or address is None:
        return None
    if not stack.start - BELOW_STACK <= address < stack.start + LOWEST_PAGE:
        return None
    return Diagnosis(
        "stack-overflow",
        REFUSED,
        "the rank needs more stack than the runtime gave it",
        f"the faulting address {address:#x} is {stack.start - address:,} bytes below its stack of {stack.size:,} bytes"
        if address < stack.start
        else f"the faulting address {address:#x} is at the end of its stack of {stack.size:,} bytes",
        "give ranks more: rankrun --stack-size, AMPI's +tcharm_stacksize; or end the recursion",
    )


def _null_pointer(context: CrashContext) -> Optional[Diagnosis]:
    if context.address is None or context.address >= LOWEST_PAGE:
        return None
    called = context.frames and context.frames[0].pc < LOWEST_PAGE
    what = "a function pointer that is null was called" if called else "a null pointer was followed"
    return Diagnosis(
        "null-pointer",
        REFUSED,
        what,
        f"the faulting address is {context.address:#x}",
        "look where the pointer comes from: `rank print` and `inspector globals` show it on every rank",
    )


def _constant_written(context: CrashContext) -> Optional[Diagnosis]:
    owner = context.owner
    if context.address is None or owner is None or owner.object is None:
        return None
    elf_object = context.job.table.objects[owner.object]
    if any(segment.writable and segment.offset <= owner.offset < segment.end for segment in elf_object.segments):
        return None
    return Diagnosis(
        "constant-written",
        REFUSED,
        "the program wrote to memory that its file declares read-only",
        f"{context.address:#x} lies in {elf_object.path.rpartition('/')[2]}+{owner.offset:#x}, no writable segment",
        "find who writes there: the innermost line is the one above",
    )


def _exception_in_copy(context: CrashContext) -> Optional[Diagnosis]:
    functions = {call.function for call in context.calls}
    table = context.job.table
    if not functions & set(THROWS) or table.method not in BYTE_COPIES or table.runtime.startswith("embedded"):
        return None
    return Diagnosis(
        OF_AMPI[1],
        REFUSED,
        "AMPI's PIEglobals does not register its copies with the unwinder, so that no exception is caught in a rank",
        f"{', '.join(sorted(functions & set(THROWS)))} on the stack",
        "link the hook module and set RANKDEBUG=exceptions (docs/ampi.md), or use pip or fs",
    )


def _uncaught_exception(context: CrashContext) -> Optional[Diagnosis]:
    if context.signal.number != signals.SIGABRT or not {call.function for call in context.calls} & set(THROWS):
        return None
    return Diagnosis(
        "uncaught-exception",
        REFUSED,
        "no function on the rank's stack catches the exception that was thrown",
        "std::terminate() on the stack",
        "catch it in the rank: `catch throw` in GDB shows where it comes from",
    )


def _heap_corruption(context: CrashContext) -> Optional[Diagnosis]:
    words = ("double free", "corrupted", "invalid next size", "invalid size", "invalid pointer", "invalid old size")
    if context.signal.number != signals.SIGABRT or not any(word in context.message for word in words):
        return None
    return Diagnosis(
        "heap-corruption",
        REFUSED,
        "libc's allocator found its own data overwritten, or a block freed twice",
        context.message,
        "look for the write beyond a block: compile with -fsanitize=address and run one rank natively",
    )


CHECKS: tuple[Callable[[CrashContext], Optional[Diagnosis]], ...] = (
    foreign_free,
    _stack_overflow,
    _null_pointer,
    _constant_written,
    _exception_in_copy,
    _uncaught_exception,
    _heap_corruption,
)
