"""Which frames of a rank's stack are the MPI runtime's own affair, and left out unless the user wants them.

Takes frames, innermost first; gives those to show and how many were folded, or the one that is the program's own. The
call that the program made (`MPI_Recv`) stays, what the runtime does inside it goes. It never touches frames of the
program; but where program and runtime are one file, names alone tell: what MPI calls back goes with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Optional, TypeVar

from pieglobalsfind.errors import RanklensError, TargetEndedError
from pieglobalsfind.model import EXITED, MIGRATED_OUT, STARTING, Owner, Rank, RankTable
from pieglobalsfind.mpi.call_from_stack import MPI_CALL, are_threads, awaits_turn
from pieglobalsfind.ranks.translate import Translator
from pieglobalsfind.ranks.variable_address import runs_original
from pieglobalsfind.stacks.call_tree import Call, own_call

if TYPE_CHECKING:
    from pieglobalsfind.session.process_view import ProcessView
    from pieglobalsfind.stacks.unwind import Walker

Item = TypeVar("Item")
FORTRAN_MAINS = ("user_main", "user_main_")  # what smpif90 makes of `program`, with debug information and without


@dataclass(frozen=True)
class Folded(Generic[Item]):
    """What is left to show, and how many frames were before it."""

    count: int
    shown: Iterator[Item]

    @property
    def note(self) -> str:
        """What a backtrace says of it, "" if nothing is folded."""
        frames = "frame" if self.count == 1 else "frames"
        return f"({self.count} {frames} of the runtime folded)" if self.count else ""


def runtime_path(table: RankTable, translator: Translator) -> str:
    """The file that the runtime's code is from, "" if it is unknown."""
    function = table.event_function or table.entry_function
    return translator.owner(function).path.removesuffix(" (deleted)") if function else ""


def is_one_file(table: RankTable, path: str) -> bool:
    """Whether the program's code is in the runtime's own file, `path`, as a program that is linked with AMPI is."""
    return any(
        elf_object.is_program and elf_object.path.removesuffix(" (deleted)") == path for elf_object in table.objects
    )


def program_calls(functions: Sequence[str]) -> int:
    """How many of a stack's functions, outermost first, lead to MPI, its call included; 0 if none is MPI's."""
    for at, function in enumerate(functions):
        if MPI_CALL.fullmatch(function) or is_fortran_name(function, "".join(functions[at + 1 : at + 2])):
            return at + 1
    return 0


def is_fortran_name(function: str, inner: str) -> bool:
    """Whether a function is Fortran's name of the MPI call that it makes: `mpi_recv_` of `MPI_Recv`, or `PMPI_Recv`.

    AMPI links these into the program where it copies the program's file, and into the runtime elsewhere.
    """
    call = MPI_CALL.fullmatch(inner.partition("(")[0])
    return call is not None and function.strip("_").lower() == call[1].lower()


def fold_calls(path: str, calls: Sequence[Call]) -> Sequence[Call]:
    """Calls, outermost first, without what the runtime in the file `path` does inside the innermost call into it.

    Stacks begin with `main`; where SMPI calls a Fortran program by another name, with that.
    """
    begin = next((at for at, call in enumerate(calls) if not path or call.library != path), 0)
    calls = calls[begin:] if begin and calls[begin].function in FORTRAN_MAINS else calls
    end = next((at + 1 for at, call in enumerate(calls) if awaits_turn(call)), len(calls))
    while end > 0 and path and calls[end - 1].library == path:
        end -= 1
    if end == 0:  # program and runtime are one file: the name alone tells
        end = program_calls([call.function for call in calls]) - 1
    return calls[: end + 1] if end > 0 else calls


def with_mpi_name(folded: Sequence[Call], calls: Sequence[Call]) -> Sequence[Call]:
    """What `fold_calls` left of calls, with MPI's name of the innermost one where that has Fortran's (`mpi_recv_`)."""
    inner = next((at for at, call in enumerate(calls) if call is folded[0]), 0) + len(folded) if folded else len(calls)
    if inner >= len(calls) or not is_fortran_name(folded[-1].function, calls[inner].function):
        return folded
    call = MPI_CALL.fullmatch(calls[inner].function.partition("(")[0])
    return [*folded[:-1], replace(folded[-1], function=call[1] if call is not None else folded[-1].function)]


def fold(moment: ProcessView, frames: Iterable[Item], pc_of: Callable[[Item], int]) -> Folded[Item]:
    """Leave out the runtime's frames inside the innermost call that the program made."""
    path = runtime_path(moment.table, moment.translator)
    if is_one_file(moment.table, path):
        whole = list(frames)
        inside = _inside_call(moment, [pc_of(frame) for frame in whole]) or 0
        return Folded(inside, iter(whole[inside:]))
    inner, rest = _awaiting_turn(moment, frames, pc_of)
    for frame in rest:
        if not path or moment.translator.owner(pc_of(frame)).path != path:
            # A rank that is in no call of the program's is shown as it is.
            return Folded(max(len(inner) - 1, 0), _joined(inner[-1:], frame, rest))
        inner.append(frame)
    return Folded(0, iter(inner))


def _awaiting_turn(
    moment: ProcessView, frames: Iterable[Item], pc_of: Callable[[Item], int]
) -> tuple[list[Item], Iterator[Item]]:
    """The frames in which a rank that is a kernel thread awaits its turn, and the others; none if it does not."""
    if not are_threads(moment.table):
        return [], iter(frames)
    whole = list(frames)
    try:
        turns = (at for at, frame in enumerate(whole) if any(map(awaits_turn, moment.walker.calls(pc_of(frame)))))
        at = next(turns, 0)
    except RanklensError:  # there is no libdw
        at = 0
    return whole[:at], iter(whole[at:])


def _inside_call(moment: ProcessView, pcs: Sequence[int]) -> Optional[int]:
    """How many frames, innermost first, are inside the program's call of MPI; None if it is in none."""
    try:
        functions = [moment.walker.calls(pc)[-1].function.partition("(")[0] for pc in reversed(pcs)]
    except RanklensError:  # names can't be had here
        return None
    return len(pcs) - program_calls(functions) if program_calls(functions) else None


def user_frame(moment: ProcessView, rank: int, frames: Iterable[Item], pc_of: Callable[[Item], int]) -> Optional[Item]:
    """The innermost frame in the program's own copy of `rank`; in any of its copies if there is none, else None.

    All ranks may use one copy; if that is the runtime's file, too, it is the frame that has called MPI. Fortran's names
    of MPI calls are the runtime's, wherever they are. What the C++ library's templates have made is not the program's.
    """
    if is_one_file(moment.table, runtime_path(moment.table, moment.translator)):
        whole = list(frames)
        count = _inside_call(moment, [pc_of(frame) for frame in whole])
        frames = whole if count is None else whole[count + 1 :]
    nearest: Optional[Item] = None
    inside: Optional[int] = None  # where the frame before is
    for frame in frames:
        owner = moment.translator.owner(pc_of(frame))
        if owner.object is not None and (owner.rank == rank or is_used(moment, rank, owner)):
            is_program = moment.table.objects[owner.object].is_program
            if is_program and not _is_library_code(moment, pc_of(frame), inside):
                return frame
            nearest = nearest or frame
        inside = pc_of(frame)
    return nearest


def is_used(moment: ProcessView, rank: int, owner: Owner) -> bool:
    """Whether a rank runs an original's code: it has no copy, or its copy calls the original's functions."""
    if owner.kind == "original" and owner.object is not None:
        return runs_original(moment.rank(rank), moment.table.objects[owner.object])
    return owner.kind == "shared"


def _is_library_code(moment: ProcessView, pc: int, inside: Optional[int]) -> bool:
    """Whether it is Fortran's name of an MPI call, or what a template of the C++ library has made in the program."""
    try:
        calls = moment.walker.calls(pc)
        inner = moment.walker.calls(inside)[-1].function if inside is not None else ""
    except RanklensError:  # names can't be had here
        return False
    return own_call(calls) is None or is_fortran_name(calls[-1].function, inner)


def location(table: RankTable, translator: Translator, walker: Walker, rank: Rank) -> Optional[Call]:
    """The innermost of the program's own calls, as `user_frame` has it; raises as `Walker.stack` does."""
    if is_one_file(table, runtime_path(table, translator)):
        calls = walker.stack(rank).calls
        count = program_calls([call.function for call in calls])
        if count > 1:
            own_calls = calls[count - 2 :: -1]
            return own_call(own_calls) or own_calls[0]
    return walker.location(rank, is_fortran_name)


def location_text(moment: ProcessView, rank: Rank, by_frames: Callable[[int], str]) -> str:
    """The innermost user function: by the files' unwind tables, else by the debugger's frames; "" if there is none.

    The debugger's frames take a hundred times as long.
    """
    if rank.state in (STARTING, EXITED, MIGRATED_OUT):
        return ""
    try:
        call = location(moment.table, moment.translator, moment.walker, rank)
    except TargetEndedError:
        raise
    except RanklensError:
        return by_frames(rank.rank)
    if call is None:
        return by_frames(rank.rank)
    return f"{call.function} at {call.file.rpartition('/')[2]}:{call.line}" if call.file else call.function


def _joined(before: list[Item], frame: Item, rest: Iterator[Item]) -> Iterator[Item]:
    yield from before
    yield frame
    yield from rest
