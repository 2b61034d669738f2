"""How a running process is read: paused for milliseconds, not stopped at all, or held still for the whole command.

Takes the command's options and a function that reads a `Job`; gives what that makes of it. Without options a process is
paused, unless its registry vouches for all that is asked for; files are just read.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, TypeVar

from pieglobalsfind.decoders.registry.read_consistent import find
from pieglobalsfind.errors import NotStoppableError, NotVirtualizedError, RanklensError, UsageError
from pieglobalsfind.model import REGISTRY, Absent
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.one_moment import at_one_moment, plan_for
from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget, check_is_process
from pieglobalsfind.targets.paused import PausedTarget

from ..terminal import progress
from . import read_stacks
from .job import Job, checked, job_of
from .target_option import explained, open_named

if TYPE_CHECKING:
    from pieglobalsfind.dwarf.types import Variables

Value = TypeVar("Value")
UNPAUSED = "so only what can be proven is shown, read while it ran"


@dataclass(frozen=True)
class Way:
    """How a process is to be read; neither: paused where that is needed."""

    freeze: bool = False
    nonblocking: bool = False


def add_way(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say how a process is read."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--freeze", action="store_true", help="hold a process still until all of it is read")
    which.add_argument(
        "--nonblocking",
        action="store_true",
        help="never stop a process: without this it is paused for milliseconds where its ranks can't be read otherwise",
    )


def way_of(options: argparse.Namespace) -> Way:
    """Return how the options ask to read."""
    return Way(options.freeze, options.nonblocking)


def read_target(
    what: str,
    exe: Optional[str],
    way: Way,
    read: Callable[[Job], Value],
    with_data: bool = False,
    is_whole: Optional[Callable[[Value], bool]] = None,
    with_requests: bool = False,
) -> Value:
    """What `read` makes of a PID, or of a file of one.

    `with_data`: it reads globals, `with_requests`: what ranks wait for. `is_whole` says whether what was read of a
    process with a registry, without stopping it, is all there is; None: it may be of different moments. `read` may be
    called several times. Raises `RanklensError` with a sentence for the user.
    """
    with progress.shown():
        if way.freeze:
            return _frozen(what, exe, read)
        return read_quietly(what, exe, way, read, with_data, is_whole, with_requests)


def read_quietly(
    what: str,
    exe: Optional[str],
    way: Way,
    read: Callable[[Job], Value],
    with_data: bool = False,
    is_whole: Optional[Callable[[Value], bool]] = None,
    with_requests: bool = False,
) -> Value:
    """`read_target`, but for `--freeze`, where something else has the terminal."""
    target = open_named(what, exe)
    if not isinstance(target, LiveTarget) or way.nonblocking:
        return _running(job_of(target), read)
    if is_whole is not None:
        job = _with_registry(target)
        if job is not None:
            value = _running(job, read)
            if is_whole(value):
                return value
    return _paused(target, read, with_data, with_requests)


def _running(job: Job, read: Callable[[Job], Value]) -> Value:
    with checked(job):
        return read(job)


def _with_registry(target: LiveTarget) -> Optional[Job]:
    """None if the process's ranks can be found only while it stands still."""
    if not _may_have_registry(target):
        return None
    try:
        job = job_of(target)
    except NotVirtualizedError:
        raise
    except RanklensError:
        return None
    return job if job.table.evidence.tier == REGISTRY else None


def _may_have_registry(target: LiveTarget) -> bool:
    """Without reading ranks: those of other runtimes may move as fast as they are read."""
    try:
        return find(target, target.maps()) is not None
    except RanklensError:
        return True  # its reader says what is wrong


def _paused(target: LiveTarget, read: Callable[[Job], Value], with_data: bool, with_requests: bool) -> Value:
    try:
        plan = plan_for(target, with_data, with_requests)
        return at_one_moment([plan], with_data, lambda paused: _running(job_of(paused[0]), read))
    except NotStoppableError as error:
        print_error("inspector", f"{error}, {UNPAUSED}")
        return _running(job_of(target), read)
    except NotVirtualizedError as error:
        raise explained(target, error) from error


def _frozen(what: str, exe: Optional[str], read: Callable[[Job], Value]) -> Value:
    """With the process held still until `read` is done; for how long, is printed on standard error."""
    if not what.isdecimal():
        raise UsageError(f"{what!r} is not a process, so it stands still already", "leave --freeze out")
    if exe is not None:
        raise UsageError("a process knows its own files", "give --exe only with a core file")
    check_is_process(int(what))
    handed = prepared(LiveTarget(int(what)))
    with FrozenTarget(int(what)) as target:
        job = job_of(target, handed)
        others = {rank.address_space for rank in job.table.ranks} - {0, *(thread.tid for thread in target.threads())}
        if others:  # ranks that are processes
            target.stop_also(sorted(others))
            job = job_of(target, handed)
        value = read(job)
    who = f"process {target.pid}, and those of its ranks," if others else f"process {target.pid}"
    print_stop(who, target.began)
    return value


def print_stop(who: str, began: float) -> None:
    """For how long processes were held still, on standard error."""
    print(f"inspector: {who} stood still for {1000 * (time.monotonic() - began):.0f} ms", file=sys.stderr)


def prepared(target: LiveTarget) -> Mapping[bytes, Variables]:
    """Debug information by build-id, and unwind tables at hand: what takes long, read while the process still runs."""
    by_build_id: dict[bytes, Variables] = {}

    def warm_up(paused: Sequence[PausedTarget]) -> None:
        job = job_of(paused[0])
        for elf_object in job.privatized:
            declared = job.declared(elf_object)
            if elf_object.build_id and not isinstance(declared, Absent):
                by_build_id[elf_object.build_id] = declared
        read_stacks.read(job, rankset.parse("all"), False)

    with suppress(RanklensError):
        at_one_moment([plan_for(target, False)], False, warm_up)
    return by_build_id
