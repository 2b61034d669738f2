"""A process, core file or snapshot with virtual ranks, as Python programs ask about it.

Takes what names the target; gives values, and raises `RanklensError` alone. Each question pauses a running process for
milliseconds, unless the caller wants otherwise. It prints nothing and writes nothing to the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Optional, TypeVar, Union

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import NotVirtualizedError, UsageError
from pieglobalsfind.jobs.members import launcher_error
from pieglobalsfind.library.stacks import Stack, stacks_of
from pieglobalsfind.library.variables import Value, values_of
from pieglobalsfind.model import Absent, Owner, Rank, RankTable, Symbol
from pieglobalsfind.session.one_moment import at_one_moment, decoded, plan_for
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.target import Target
from pieglobalsfind.targets import check_is_same, open_target
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import LiveTarget, check_is_process
from pieglobalsfind.targets.paused import PausedTarget

Answer = TypeVar("Answer")

BRIEFLY, THROUGHOUT, NEVER = "briefly", "throughout", "never"


class Job:
    """One target with its ranks; a context manager. Every method raises `RanklensError` where there is no answer.

    `pause` says how a running process is read: "briefly" pauses it for milliseconds at each question, "throughout"
    holds it still until `close`, "never" does not stop it.
    """

    def __init__(self, target: Target, pause: str = BRIEFLY) -> None:
        """Take a target that `open` has opened; raises `NotVirtualizedError` if it has no ranks."""
        self._target = target
        self._pause = pause
        self._closed = False
        self._standing = None if isinstance(target, LiveTarget) and target.is_live else _view(target)
        if self._standing is None:
            self._ask(lambda view: None)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let a process that stands still go on. Questions are refused afterwards."""
        self._closed = True
        if isinstance(self._target, FrozenTarget):
            self._target.close()

    @property
    def description(self) -> str:
        """How to name the target in a sentence: "process 4711", "core file core.4711"."""
        return self._target.description

    def table(self) -> RankTable:
        """Return all that is known of ranks, objects and method at one moment."""
        return self._ask(lambda view: view.table)

    def ranks(self) -> tuple[Rank, ...]:
        """Return the ranks in ascending order, with the MPI call that each one waits in."""
        return self._ask(lambda view: tuple(view.shown(rank.rank) for rank in view.table.ranks))

    def owner(self, address: int) -> Owner:
        """Return which rank an address belongs to, and what lies there."""
        return self._ask(lambda view: view.translator.owner(address))

    def symbol(self, address: int) -> Union[Symbol, Absent]:
        """Return the symbol and the source line of an address, or why there is none."""
        return self._ask(lambda view: view.symbolizer.symbol(view.translator.owner(address)))

    def globals(self, name: str, file: str = "") -> dict[int, Union[Value, Absent]]:
        """Return a global variable's value in each rank, or why a rank has none.

        `name` is as debuggers write it (`mesh::cells`, in Fortran `module::name`); `file`, the end of a source file's
        path, tells variables of one name apart. Raises `UsageError` if no variable is meant, or several.
        """
        return self._ask(lambda view: values_of(view, name, file), with_data=True)

    def stack(self, rank: int, runtime: bool = False) -> Stack:
        """Return a rank's stack, with `runtime` also what the MPI library does inside the program's call of it."""
        stack = self.stacks([rank], runtime)[rank]
        if isinstance(stack, Absent):
            raise UsageError(f"rank {rank} has no stack, {stack.reason}", stack.hint)
        return stack

    def stacks(self, ranks: Optional[Sequence[int]] = None, runtime: bool = False) -> dict[int, Union[Stack, Absent]]:
        """Return the stacks of some ranks, or of all, at one moment; or why a rank has none."""
        return self._ask(lambda view: stacks_of(view, ranks, runtime))

    def _ask(self, read: Callable[[ProcessView], Answer], with_data: bool = False) -> Answer:
        """What `read` makes of the target; of a running process it may be called several times."""
        if self._closed:
            raise UsageError(f"{self.description} is closed", "use it inside the with statement")
        if self._standing is not None:
            return read(self._standing)
        assert isinstance(self._target, LiveTarget)
        if self._pause == NEVER:
            answer = read(_view(self._target))
        else:
            process = plan_for(self._target, with_data)
            answer = at_one_moment([process], with_data, lambda paused: read(view_of(paused[0])))
        check_is_same(self._target)
        return answer


def view_of(target: PausedTarget) -> ProcessView:
    """A process as it was when it was paused; raises `RanklensError` if it has no ranks."""
    return ProcessView(target, decoded(target))


def _view(target: Target) -> ProcessView:
    return ProcessView(target, decode(target))


def open(
    *,
    pid: Optional[int] = None,
    core: Optional[str] = None,
    snapshot: Optional[str] = None,
    exe: Optional[str] = None,
    pause: str = BRIEFLY,
) -> Job:
    """Open a running process, a core file or a snapshot of `inspector snapshot`.

    `exe` is the program that left a core file, if it is elsewhere now. Raises `UsageError` for a call that makes no
    sense, `TargetError` if the target can't be read, `NotVirtualizedError` if it has no ranks.
    """
    given = [source for source in (pid, core, snapshot) if source is not None]
    if len(given) != 1:
        raise UsageError("name one target", "give either pid=, core= or snapshot=")
    if pause not in (BRIEFLY, THROUGHOUT, NEVER):
        raise UsageError(f"{pause!r} is not a kind of pause", 'give "briefly", "throughout" or "never"')
    try:
        if pid is not None and pause == THROUGHOUT:
            return _held(pid)
        return Job(open_target(pid=pid, core=core if core is not None else snapshot, exe=exe), pause)
    except NotVirtualizedError as error:
        raise (launcher_error(pid) if pid is not None else None) or error from error


def _held(pid: int) -> Job:
    """A job that stands still, with the processes of its ranks where these are processes of their own."""
    check_is_process(pid)
    target = FrozenTarget(pid)
    try:
        job = Job(target, THROUGHOUT)
        others = {rank.address_space for rank in job.table().ranks} - {0, *(thread.tid for thread in target.threads())}
        if others:
            target.stop_also(sorted(others))
            job = Job(target, THROUGHOUT)
    except BaseException:
        target.close()
        raise
    return job
