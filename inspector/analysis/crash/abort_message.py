"""What libc or Charm++ printed before it ended a process by abort(): the reason, in the words of who gave up.

Takes a kernel thread's stack; reads what both keep of it in memory, as printed text is gone.
"""

from __future__ import annotations

from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.stacks.frame_arguments import RankStack, Where

from ...job.job import Job
from .thread_stacks import ThreadStack, ThreadStacks

MOST_MESSAGE = 1024  # bytes
CHARM_ABORT = "CmiAbortHelper"  # (source, message, suggestion, tellDebugger, framesToSkip), conv-core of Charm++ 6.9 on
MESSAGE, PARAMETERS = 1, 5


def abort_message(stacks: ThreadStacks, stack: ThreadStack) -> str:
    """Return one line, "" if there is none."""
    return " ".join((libc_message(stacks.job) or charm_message(stacks, stack)).split())


def charm_message(stacks: ThreadStacks, stack: ThreadStack) -> str:
    """What CmiAbort() was called with: AMPI gives it the text of an exception that no handler caught."""
    if stack.memory is None:
        return ""
    calls = [stacks.calls(frame)[-1].function.partition("(")[0] for frame in stack.frames]
    if CHARM_ABORT not in calls:
        return ""
    where = Where(calls.index(CHARM_ABORT), MESSAGE, PARAMETERS)
    address = RankStack(stacks.job.walker, stack.frames, stack.memory).word(where)
    return text_at(stacks.job, address) if isinstance(address, int) else ""


def text_at(job: Job, address: int) -> str:
    """A text up to its null byte, "" if it can't be read."""
    try:
        data = job.target.read(address, MOST_MESSAGE)
    except MemoryUnreadable:
        return ""
    return data.split(b"\0")[0].decode("utf-8", "replace")


def libc_message(job: Job) -> str:
    """What libc printed before it called abort(): `__abort_msg`, a private symbol that glibc exports for debuggers."""
    starts = (  # of what is loaded, and not of what a reader of debug information has mapped of the file
        mapping.start for mapping in job.target.maps() if mapping.path.endswith("/libc.so.6") and not mapping.offset
    )
    for base in starts:
        try:
            pointer = LoadedElf(job.target.read, base).symbol("__abort_msg")
            block = int.from_bytes(job.target.read(pointer, 8), "little") if pointer else 0
            size = int.from_bytes(job.target.read(block, 4), "little") if block else 0
            text = job.target.read(block + 4, min(size, MOST_MESSAGE)) if size > 4 else b""
        except RanklensError:
            continue
        if text:
            return text.split(b"\0")[0].decode("utf-8", "replace").strip()
    return ""
