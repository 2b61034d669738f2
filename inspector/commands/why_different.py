"""`inspector why-different A B TARGET`: where two ranks' stacks part, and the globals that they differ in.

Takes two ranks of a process or a core file; gives the calls that they share, the first that they do not, and the values
of every global that is not the same. Pointers to the same place of each rank's own count as the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from pieglobalsfind.errors import TargetError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import Span
from pieglobalsfind.stacks.call_tree import Call

from ..analysis.read_globals import read_globals
from ..job.job import Job, Subject, say_warnings, subject_of
from ..job.read_stacks import Stacks, label, read_one
from ..job.reading import add_way, read_target, way_of
from ..output.adaptive_table import Listing
from ..output.provenance import print_how
from ..output.table_cells import heading
from ..schemas import envelope, schema_name
from ..terminal.console import console
from ..terminal.forms import print_json
from ..terminal.text import declared, harmless
from .globals import on_ranks

SCHEMA = schema_name("why-different", 1)


@dataclass(frozen=True)
class DifferentVariable:
    """A global that differs: where it is declared, and its value on either rank ("" if it has none there)."""

    name: str
    file: str
    line: int
    values: tuple[str, str]


@dataclass(frozen=True)
class Difference:
    """Two ranks: the calls that both are in, outermost first, and what each does from there on."""

    ranks: tuple[int, int]
    shared: tuple[Call, ...]
    apart: tuple[tuple[Call, ...], tuple[Call, ...]]
    variables: tuple[DifferentVariable, ...]
    missing: dict[int, str]
    absent: tuple[Absent, ...]
    unread: int  # globals that could not be read on one of the ranks


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Compare two ranks: the calls that they share, the first that they do not, and every global whose "
        "value is not the same. The target is not changed; a process is paused for milliseconds."
    )
    parser.epilog = "exit status: 0 done, 1 no difference found, 2 bad call or unreadable target"
    parser.add_argument("first", metavar="A", type=int, help="a rank")
    parser.add_argument("second", metavar="B", type=int, help="another rank")
    parser.add_argument("target", metavar="PID|FILE", help="a running process, a core file, or a snapshot")
    parser.add_argument("--exe", metavar="FILE", help="the program that left the core file")
    parser.add_argument(
        "--all", action="store_true", help="also variables of the MPI runtime and the C and C++ libraries"
    )
    add_way(parser)
    parser.add_argument("--json", action="store_true", help="as JSON (docs/why-different-schema.md)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector why-different`; returns the exit status."""
    if options.first == options.second:
        raise UsageError("a rank does not differ from itself", "name two ranks")
    try:
        job, difference = read_target(
            options.target,
            options.exe,
            way_of(options),
            lambda job: (job, compare(job, options.first, options.second, options.all)),
            with_data=True,
        )
    except TargetError as error:
        if options.target.isdecimal() and Path(f"/proc/{options.first}").exists():
            order = f"inspector why-different {options.second} {options.target} {options.first}"
            raise UsageError(error.sentence, f"ranks come before the process: {order}") from error
        raise
    say_warnings(job)
    if options.json:
        print_json(as_json(subject_of(job), difference))
    else:
        show(subject_of(job), difference)
    return 0 if difference.variables or any(difference.apart) else 1


def compare(job: Job, first: int, second: int, every: bool = False) -> Difference:
    """Read both ranks; raises `UsageError` if the process does not have them."""
    stacks = read_one(job, (Span(first, first), Span(second, second)), with_runtime=False)
    read = read_globals(job, every)
    variables = []
    compared = list(on_ranks(read, frozenset((first, second))))
    for global_values in compared:
        values = {rank: group.value for group in global_values.groups for rank in group.ranks}
        if global_values.differs:
            variables.append(
                DifferentVariable(
                    global_values.name,
                    global_values.file,
                    global_values.line,
                    (values.get(first, ""), values.get(second, "")),
                )
            )
    shared, apart = split(stacks, first, second)
    unread = sum(not all(group.is_known for group in global_values.groups) for global_values in compared)
    return Difference((first, second), shared, apart, tuple(variables), stacks.missing, read.absent, unread)


def split(
    stacks: Stacks, first: int, second: int
) -> tuple[tuple[Call, ...], tuple[tuple[Call, ...], tuple[Call, ...]]]:
    """The common calls, and each rank's own; a rank without a stack shares nothing and has nothing."""
    calls, other = stacks.calls.get(first, ()), stacks.calls.get(second, ())
    common = 0
    while common < min(len(calls), len(other)) and calls[common] == other[common]:
        common += 1
    return calls[:common], (calls[common:], other[common:])


def show(subject: Subject, difference: Difference) -> None:
    """Print where two ranks part."""
    screen = console()
    print_how(subject, screen)
    heading(screen, "Stacks", "outermost call first")
    for call in difference.shared:
        screen.print(Text(f"both      {harmless(label(call))}"))
    for rank, calls in zip(difference.ranks, difference.apart):
        for call in calls:
            screen.print(Text(f"rank {rank:<4} {harmless(label(call))}", style="yellow"))
    for rank, reason in difference.missing.items():
        screen.print(Text(f"! rank {rank}: {harmless(reason)}", style="bold red"))
    unread = f"; {difference.unread} can't be read" if difference.unread else ""
    heading(screen, "Globals", f"{len(difference.variables)} differ{unread}")
    table = Listing(("variable", "declared", *(f"rank {rank}" for rank in difference.ranks)))
    for variable in difference.variables:
        place = declared(variable.file, variable.line)
        table.add((harmless(variable.name), harmless(place), *(harmless(value) for value in variable.values)))
    screen.print(table)
    for absent in difference.absent:
        screen.print(Text(f"! {harmless(str(absent))}", style="bold red"))


def as_json(subject: Subject, difference: Difference) -> dict[str, object]:
    """Return the differences as JSON has them."""

    def calls(stack: Sequence[Call]) -> list[dict[str, object]]:
        return [{"function": call.function, "file": call.file, "line": call.line} for call in stack]

    return {
        **envelope(SCHEMA, harmless(subject.description), subject.how, subject.taken),
        "ranks": list(difference.ranks),
        "shared": calls(difference.shared),
        "apart": [calls(stack) for stack in difference.apart],
        "variables": [
            {"name": variable.name, "file": variable.file, "line": variable.line, "values": list(variable.values)}
            for variable in difference.variables
        ],
        "missing": {str(rank): reason for rank, reason in difference.missing.items()},
        "unread": difference.unread,
    }
