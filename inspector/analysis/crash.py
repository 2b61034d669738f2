"""How the process of a core file ended: the signal, the rank, the address of a fault and its owner, the user's line.

Takes a `Job`; gives a `Crash`, or None where no signal ended the process. It reads the core file alone; which known
diagnosis fits is `crash_diagnoses`.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import Optional, Union

from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import RUNNING, Absent, Rank, Region
from pieglobalsfind.stacks.unwind import Activation, Walker
from pieglobalsfind.target import KernelThread
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.targets.core_notes import FatalSignal
from pieglobalsfind.values.address_names import AddressNames

from ..job.job import Job
from ..job.stacks import label
from .crash_diagnoses import diagnose
from .crash_scene import Scene
from .diagnoses import Diagnosis

# Those by which a program ends by its own fault; a debugger's or the user's (SIGTRAP, SIGQUIT) are none of them
FATAL = (signals.SIGILL, signals.SIGABRT, signals.SIGBUS, signals.SIGFPE, signals.SIGSEGV, signals.SIGSYS)
NO_RANK = -1
MOST_MESSAGE = 1024  # bytes


@dataclass(frozen=True)
class Crash:
    """`address` is what a fault was about and `owner` what lies there; None and "" for other signals.

    `rank` is None where no rank's thread got the signal. `place` is the innermost call of the program's own, "" if it
    is not known, `message` what libc printed as it gave up.
    """

    signal: str
    rank: Optional[int]
    address: Optional[int]
    owner: str
    place: str
    message: str = ""
    diagnosis: Optional[Diagnosis] = None

    @property
    def sentence(self) -> str:
        """`rank 3 ended by SIGSEGV in die at crash.c:21: it used address 0x4 (not mapped)`."""
        who = "a thread that runs no rank" if self.rank is None else f"rank {self.rank}"
        where = f" in {self.place}" if self.place else ""
        fault = f": it used address {self.address:#x} ({self.owner})" if self.address is not None else ""
        return f"{who} ended by {self.signal}{where}{fault or (f': {self.message}' if self.message else '')}"


def crash_of(job: Job) -> Optional[Crash]:
    """How the process ended, if a signal ended it."""
    signal = job.target.signal if isinstance(job.target, CoreTarget) else None
    if signal is None or signal.number not in FATAL:
        return None
    scene = _scene_of(job, signal)
    number = scene.rank.rank if scene.rank is not None else None
    return Crash(
        signals.Signals(signal.number).name,
        number,
        scene.address,
        owner_text(job, scene, number),
        place_of(scene),
        scene.message,
        diagnose(scene),
    )


def owner_text(job: Job, scene: Scene, rank: Optional[int]) -> str:
    """Return what owns the faulting address, as a sentence's part."""
    owner = scene.owner
    if owner is None:
        return ""
    if owner.kind == "unmapped":
        return "not mapped"
    name = AddressNames(job.table, job.translator, job.symbolizer).name(NO_RANK, owner.address).strip("<>")
    return name if owner.rank is None or owner.rank != rank else name.replace(f"rank {rank}: ", "its own ", 1)


def _scene_of(job: Job, signal: FatalSignal) -> Scene:
    thread = next((thread for thread in job.threads if thread.tid == signal.tid), None)
    rank = rank_of(job, thread, signal.tid)
    walker = Walker(job.target, job.table, job.translator, job.contexts, job.symbolizer)
    frames = frames_of(walker, rank, thread)
    calls_at = tuple(walker.calls(frame.lookup) for frame in frames)
    return Scene(job, signal, rank, frames, calls_at, abort_message(job))


def rank_of(job: Job, thread: Optional[KernelThread], tid: int) -> Optional[Rank]:
    """The rank that the thread ran: by its stack, or else by what the runtime keeps."""
    ranks = {rank.rank: rank for rank in job.table.ranks}
    number = job.table.processor.stack_pointer
    if thread is not None and not isinstance(thread.registers, Absent) and number in thread.registers:
        owner = job.translator.owner(thread.registers[number])
        if owner.rank in ranks:
            return ranks[owner.rank]
    running = [rank for rank in job.table.ranks if rank.state == RUNNING and rank.kernel_thread == tid]
    return running[0] if len(running) == 1 else None


def frames_of(walker: Walker, rank: Optional[Rank], thread: Optional[KernelThread]) -> tuple[Activation, ...]:
    """As many frames as are known; a stack that has overflowed has at least the innermost."""
    if thread is None or isinstance(thread.registers, Absent):
        return ()
    stack: Union[Region, Absent] = rank.stack if rank is not None else Absent("no rank's")
    try:
        return tuple(walker.frames_from(stack, thread.registers)[0])
    except (RanklensError, KeyError):
        return ()


def place_of(scene: Scene) -> str:
    """The innermost call in the program's own file."""
    program = {elf_object.path for elf_object in scene.job.table.objects if elf_object.is_program}
    mine = next((call for call in scene.calls if call.library in program), None)
    return label(mine) if mine is not None else ""


def abort_message(job: Job) -> str:
    """What libc printed before it called abort(): `__abort_msg`, a private symbol that glibc exports for debuggers."""
    starts = {
        mapping.path: mapping.start for mapping in reversed(job.target.maps()) if mapping.path.endswith("/libc.so.6")
    }
    for base in starts.values():
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
