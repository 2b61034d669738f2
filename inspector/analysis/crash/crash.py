"""How a process came to its end, or in whose signal's handler it stands: signal, rank, faulting address, user's line.

Takes a `Job`; gives a `Crash`, or None where there is no such signal. It reads what the job's target has of memory and
threads; which known diagnosis fits is the matter of `diagnoses`.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from functools import partial
from typing import Optional

from pieglobalsfind.stacks.call_tree import own_call
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.values.address_names import AddressNames

from ...job.job import Job
from ...job.read_stacks import label
from ..method_diagnoses import Diagnosis
from .abort_message import abort_message
from .crash_context import FATAL, CrashContext, context_of_signal
from .diagnoses import diagnose
from .thread_stacks import ThreadStacks
from .unfinished_handler import scene_of_handler

NO_RANK = -1


@dataclass(frozen=True)
class Crash:
    """`address` is what a fault was about and `owner` what lies there; None and "" for other signals.

    `rank` is None where no rank's thread got the signal. `place` is the innermost call of the program's own, "" if it
    is not known, `message` what libc or Charm++ printed as it gave up. `handler` is the signal's handler that was
    called, "" if none was; `later` what followed the signal, "" where the process ended by it.
    """

    signal: str
    rank: Optional[int]
    address: Optional[int]
    owner: str
    place: str
    message: str = ""
    diagnosis: Optional[Diagnosis] = None
    handler: str = ""
    later: str = ""

    @property
    def sentence(self) -> str:
        """`rank 3 ended by SIGSEGV in die at crash.c:21: it used address 0x4 (not mapped)`."""
        who = "a thread that runs no rank" if self.rank is None else f"rank {self.rank}"
        how = "got" if self.later else "ended by"
        where = f" in {self.place}" if self.place else ""
        fault = f": it used address {self.address:#x} ({self.owner})" if self.address is not None else ""
        why = fault or (f": {self.message}" if self.message else "")
        return f"{who} {how} {self.signal}{where}{why}{f'; {self.later}' if self.later else ''}"


def crash_of(job: Job) -> Optional[Crash]:
    """How the process ended, if a signal ended it, or in which signal's handler it stands."""
    stacks = ThreadStacks(job)
    signal = job.target.signal if isinstance(job.target, CoreTarget) else None
    if signal is not None and signal.number in FATAL:
        context = context_of_signal(stacks, signal, partial(abort_message, stacks))
    else:
        handler_scene = scene_of_handler(stacks, partial(abort_message, stacks))
        if handler_scene is None:
            return None
        context = handler_scene
    number = context.rank.rank if context.rank is not None else None
    return Crash(
        signals.Signals(context.signal.number).name,
        number,
        context.address,
        owner_text(job, context, number),
        place_of(context),
        context.message,
        diagnose(context),
        context.handler,
        context.later,
    )


def owner_text(job: Job, context: CrashContext, rank: Optional[int]) -> str:
    """Return what owns the faulting address, as a sentence's part."""
    owner = context.owner
    if owner is None:
        return ""
    if owner.kind == "unmapped":
        return "not mapped"
    name = AddressNames(job.table, job.translator, job.symbolizer).name(NO_RANK, owner.address).strip("<>")
    return name if owner.rank is None or owner.rank != rank else name.replace(f"rank {rank}: ", "its own ", 1)


def place_of(context: CrashContext) -> str:
    """The innermost call in the program's own file."""
    program = {elf_object.path for elf_object in context.job.table.objects if elf_object.is_program}
    own_calls = [call for call in context.calls if call.library in program]
    return label(own_call(own_calls) or own_calls[0]) if own_calls else ""
