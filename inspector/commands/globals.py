"""`inspector globals`: every global's value on every rank, of one process, a file of one, or a whole job.

Takes the command line's options; prints a table, or that part of the report's JSON. Every process is paused while its
globals are read, all processes of a job together: no registry vouches for ranks' memory.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Union

from pieglobalsfind.dwarf.types import Variable, Variables
from pieglobalsfind.jobs.members import Members
from pieglobalsfind.ranks import rankset
from pieglobalsfind.ranks.rankset import RankSet, compact
from pieglobalsfind.ranks.variable_address import nominal
from pieglobalsfind.shell.exit_status import print_error

from ..analysis.global_values import INITIAL, Globals, GlobalValues
from ..analysis.read_globals import read_globals
from ..analysis.report import global_as_json
from ..analysis.report_schema import PARTS as PART_SCHEMAS
from ..job.job import Job, Subject, say_warnings, subject_of
from ..job.rank_option import Chosen, among, by_reason, of_one
from ..job.rank_option import add_to as add_rank_option
from ..job.read_processes import homes_of, read_each, subject_of_all
from ..job.reading import Way, add_way, read_target, way_of
from ..job.target_option import add_target, job_named
from ..schemas import envelope
from ..terminal.forms import add_tsv, print_json
from ..terminal.text import harmless, of_ranks
from ..values import slices

if TYPE_CHECKING:
    from rich.console import Console

Read = Callable[[Job], Globals]


@dataclass(frozen=True)
class ReadGlobals:
    """All globals of a subject, and the ranks that --rank means."""

    subject: Subject
    globals: Globals
    chosen: Chosen


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show every global's value on every rank, equal values together. The target is not changed; a process is "
        "paused for milliseconds at most."
    )
    parser.epilog = "exit status: 0 done, 1 nothing found, 2 bad call or unreadable target"
    add_target(parser)
    parser.add_argument(
        "pattern", nargs="?", metavar="PATTERN", help="names to show, with * and ?, or elements: grid[3:10]"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON (docs/report-schema.md#parts)")
    add_tsv(form)
    add_way(parser)
    add_rank_option(parser)
    parser.add_argument(
        "--nominal",
        action="store_true",
        help="the values in the ranks' own copies, also of variables that their code uses elsewhere",
    )
    parser.add_argument(
        "--all", action="store_true", help="also the variables of the MPI runtime and the C and C++ libraries"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--differ", action="store_true", help="only those that differ: they have to be private")
    which.add_argument("--equal", action="store_true", help="only those that are equal on all ranks")
    which.add_argument("--unused", action="store_true", help="only those that have their initial value on all ranks")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector globals`; returns the exit status."""
    if options.job is not None and options.pattern is None:  # the only word is the pattern
        options.target, options.pattern = None, options.target
    options.pattern = "*" if options.pattern is None else options.pattern
    every = options.all or not re.search(r"[*?[]", options.pattern)  # one name means that variable, whose ever it is
    elements = slices.parse(options.pattern)
    read_values = partial(read_globals, every=every, choose=partial(elements_of, elements) if elements else None)
    if options.nominal:
        read_values = partial(read_nominal, read_values)
    members = job_named(options.job, options.target, options.exe)
    wanted_ranks = rankset.parse(options.rank)
    if members is not None:
        read = read_members(members, way_of(options), wanted_ranks, read_values)
    else:
        job, read = read_target(
            options.target,
            options.exe,
            way_of(options),
            lambda job: (job, read_one(job, wanted_ranks, read_values)),
            with_data=True,
        )
        say_warnings(job)
    chosen = frozenset(read.chosen.ranks)
    matching = [
        global_values
        for global_values in on_ranks(read.globals, chosen)
        if matches(global_values, options.pattern, elements is not None)
    ]
    shown = [global_values for global_values in matching if is_wanted(global_values, options)]
    for sentence, unknown in by_reason(read.chosen.unknown):
        print_error(
            "inspector", f"{of_ranks(compact(unknown))} {'is' if len(unknown) == 1 else 'are'} not shown: {sentence}"
        )
    if options.json:
        subject = read.subject
        head = envelope(PART_SCHEMAS["globals"], harmless(subject.description), subject.how, subject.taken)
        print_json({**head, "globals": [global_as_json(value) for value in shown]})
    else:
        show(read, matching, shown, options)
    return 0 if shown else 1


def read_nominal(read_values: Read, job: Job) -> Globals:
    """The globals as the ranks' own copies have them."""
    ranks = tuple(nominal(rank) for rank in job.table.ranks)
    return read_values(replace(job, table=replace(job.table, ranks=ranks)))


def elements_of(
    chosen: slices.Slice, declared: Variables, bounds: Callable[[Variable], slices.Bounds]
) -> Iterator[Union[Variable, slices.Element]]:
    """The chosen elements of all arrays and containers whose names match; `bounds` are those of all ranks."""
    for variable in declared:
        if fnmatch.fnmatchcase(variable.name, chosen.name):
            yield from slices.elements(declared.types, variable, chosen, bounds)


def read_one(job: Job, wanted: RankSet, read_values: Read) -> ReadGlobals:
    """Of one process or file; raises `UsageError` for ranks that it does not have."""
    return ReadGlobals(subject_of(job), read_values(job), of_one(job, wanted))


def read_members(members: Members, way: Way, wanted: RankSet, read_values: Read) -> ReadGlobals:
    """Of all processes of a job together; a rank's values are those of the process where it is.

    Raises `UsageError` for ranks that none of them has.
    """
    from ..collect.whole_job import merge_globals  # late: not for one process

    read = read_each(members, way, lambda job, _: (job, read_values(job), among(job, wanted)), with_data=True)
    jobs = [job for job, _, _ in read]
    homes = homes_of(jobs)
    subject = subject_of_all(members, jobs, homes)
    rankset.check(wanted, subject.table, several=len(members.found) > 1)
    own = [frozenset(rank for rank, home in homes.items() if home is job) for job in jobs]
    chosen = sorted(
        {rank for (_, _, chosen_there), ranks in zip(read, own) for rank in chosen_there.ranks if rank in ranks}
    )
    unknown = {
        rank: why
        for (_, _, chosen_there), ranks in zip(read, own)
        for rank, why in chosen_there.unknown.items()
        if rank in ranks
    }
    return ReadGlobals(
        subject, merge_globals([variables for _, variables, _ in read], own), Chosen(tuple(chosen), unknown)
    )


def on_ranks(read: Globals, chosen: frozenset[int]) -> Iterator[GlobalValues]:
    """The variables with the values of certain ranks alone."""
    for value in read.values:
        groups = (replace(group, ranks=tuple(rank for rank in group.ranks if rank in chosen)) for group in value.groups)
        yield replace(value, groups=tuple(group for group in groups if group.ranks))


def matches(global_values: GlobalValues, pattern: str, is_element: bool) -> bool:
    """Return whether the pattern means a variable that a chosen rank has."""
    return bool(global_values.groups) and (is_element or fnmatch.fnmatchcase(global_values.name, pattern))


def is_wanted(global_values: GlobalValues, options: argparse.Namespace) -> bool:
    """Return whether the options ask for variables with this verdict."""
    if options.unused:
        return global_values.verdict == INITIAL
    if options.differ or options.equal:
        return global_values.differs == options.differ and global_values.is_known
    return True


def which(options: argparse.Namespace) -> str:
    """What was asked for, as far as it leaves something out."""
    words = [] if options.pattern == "*" else [repr(harmless(options.pattern))]
    words += [f"--{name}" for name in ("differ", "equal", "unused") if getattr(options, name)]
    words += [] if options.rank == "all" else [f"--rank {harmless(options.rank)}"]
    return f" {' '.join(words)}" if words else ""


def summary_of(variables: list[GlobalValues], chosen: Iterable[int], present: int) -> str:
    """How many of the variables that match differ between the ranks that are shown."""
    from ..output.global_tables import counted

    ranks = sorted(chosen)
    if len(ranks) == 1 < present:
        return f"{len(variables)} on rank {ranks[0]}; verdicts are about all ranks"
    if len(ranks) >= present:
        return counted(variables, "ranks")
    return f"{counted(variables, of_ranks(compact(ranks)))}; verdicts are about all ranks"


def show(
    read: ReadGlobals, matching: list[GlobalValues], shown: list[GlobalValues], options: argparse.Namespace
) -> None:
    """Print as text how the matching globals compare, and the table of those that the options ask for."""
    from ..output.provenance import print_how
    from ..terminal.console import console

    screen = console(options.tsv)
    print_how(read.subject, screen)
    ranks = read.chosen.ranks
    summary = summary_of(matching, ranks, len(read.subject.present)) if shown else f"no global matches{which(options)}"
    print_globals(Globals(tuple(shown), read.globals.absent, read.globals.apart), summary, screen)


def print_globals(read: Globals, summary: str, screen: Console) -> None:
    """Print the table of globals."""
    from rich.text import Text

    from ..output.adaptive_table import Listing
    from ..output.global_tables import add_global, print_apart, print_needless
    from ..output.table_cells import heading

    heading(screen, "Globals", summary)
    if read.values:
        print_needless(read, screen)
        table = Listing(("variable", "declared", "type", "verdict", "ranks", "value"), below=(4, 5))
        for value in read.values:
            add_global(table, value, screen, verdicts=True)
        screen.print(table)
    print_apart(read, "--all", screen)
    for absent in read.absent:
        screen.print(Text(f"! {harmless(f'{absent.reason}: {absent.hint}')}", style="bold red"))
