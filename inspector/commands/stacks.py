"""`inspector stacks`: where all ranks are, without any debugger.

Takes a process or a core file; gives a call tree, or equal stacks together, or the folded form that flame-graph tools
read, or JSON. Ranks that wait, of a runtime with a registry, are read while they wait; else the job is paused for
milliseconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from pieglobalsfind.debugger.wording import noun
from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.stacks import call_tree

from ..collect import mpi_option
from ..job.job import Job, Subject, print_warnings, say_warnings, subject_of
from ..job.rank_option import add_to as add_rank_option
from ..job.rank_option import by_reason
from ..job.read_stacks import GroupedStacks, Stacks, label, read, read_one
from ..job.reading import Way, add_way, read_target, way_of
from ..job.target_option import add_target, job_named
from ..terminal.forms import print_json
from ..terminal.renamed_option import RenamedOption
from ..terminal.text import harmless, of_ranks

if TYPE_CHECKING:
    from pieglobalsfind.jobs.members import Members

DEFAULT_KEEP = 6  # files of the flight recorder
SCHEMA = "ranklens-stacks-1"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show all ranks' stacks as one call tree, each call with the ranks that are in it. The job is paused for "
        "milliseconds where ranks run, or where its runtime keeps no registry."
    )
    parser.epilog = "exit status: 0 done, 1 no stacks found, 2 bad call or unreadable target"
    add_target(parser)
    mpi_option.add_to(parser)
    add_rank_option(parser)
    parser.add_argument("--runtime", action="store_true", help="with the MPI runtime's own frames")
    add_way(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--tree", action="store_true", help="as one call tree (default)")
    form.add_argument("--flat", action="store_true", help="equal stacks together, innermost call first")
    form.add_argument("--folded", action="store_true", help="for flame graphs, a line a stack: `main;solve;MPI_Recv 7`")
    form.add_argument("--fold", action=RenamedOption, new_name="--folded")
    form.add_argument("--json", action="store_true", help="as JSON (docs/stacks-schema.md)")
    recorder = parser.add_argument_group("flight recorder", "the last stacks before a hang or a crash, in files")
    recorder.add_argument("--every", metavar="TIME", help="read again and again until the job ends: 10s, 500ms")
    recorder.add_argument("--keep", metavar="N", type=int, help="how many files are kept (6)")
    recorder.add_argument("-o", metavar="DIR", dest="folder", help="where to, as JSON (docs/stacks-schema.md)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector stacks`; returns the exit status."""
    if options.every is not None:
        return _run_recorder(options)
    if options.folder is not None or options.keep is not None:
        raise UsageError("-o and --keep are for the flight recorder", "say how often it is to read by --every")
    chosen = rankset.parse(options.rank)
    if mpi_option.is_collector(options):
        return mpi_option.guarded(lambda: _run_collector(options, chosen))
    members = job_named(options.job, options.target, options.exe)
    if members is not None:
        subject, stacks = read_members(members, way_of(options), chosen, options.runtime)
    else:
        job, stacks = read_process(options.target, options.exe, way_of(options), chosen, options.runtime)
        subject = subject_of(job)
        say_warnings(job)
    return _print(subject, stacks.grouped(), options)


def _run_collector(options: argparse.Namespace, chosen: rankset.RankSet) -> int:
    from ..collect import collectors, mpi_stacks  # late: only this needs them

    reading = mpi_stacks.reading(options.job or "", chosen, options.runtime)
    with collectors.gathered(reading, mpi_option.timeout_of(options)) as gathered:
        if gathered.findings is None:
            return 0
        subject, stacks = gathered.findings.finished(gathered.name, gathered.count)
        print_warnings(subject)
        rankset.check(chosen, subject.table, several=True)
        return _print(subject, stacks, options)


def _print(subject: Subject, stacks: GroupedStacks, options: argparse.Namespace) -> int:
    if options.json:
        print_json(as_json(subject, stacks))
    elif options.folded:
        for line in folded(stacks):
            print(harmless(line))
    else:
        show(subject, stacks, flat(stacks) if options.flat else call_tree.lines(stacks.tree()))
    return 0 if stacks.groups else 1


def _run_recorder(options: argparse.Namespace) -> int:
    if options.job is not None or options.target is None or not options.target.isdecimal():
        raise UsageError("the flight recorder reads one process", "give its PID; start one for each process of a job")
    if options.exe is not None or options.freeze:
        raise UsageError(
            "the flight recorder holds no process still, and reads no files", "leave --freeze and --exe out"
        )
    keep = DEFAULT_KEEP if options.keep is None else options.keep
    if options.folder is None or keep < 1:
        raise UsageError("the flight recorder needs a folder, and at least one file to keep", "-o DIR --keep 6")
    from ..job.flight_recorder import record, seconds_of  # late: not for one look

    every = seconds_of(options.every, "--every")
    chosen = rankset.parse(options.rank)

    def once() -> dict[str, object]:
        job, stacks = read_process(options.target, None, way_of(options), chosen, options.runtime)
        return as_json(subject_of(job), stacks.grouped())

    record(once, int(options.target), every, keep, Path(options.folder))
    return 0


def read_process(
    what: str, exe: Optional[str], way: Way, chosen: rankset.RankSet, with_runtime: bool
) -> tuple[Job, Stacks]:
    """Of one process or file, paused if ranks run or its runtime keeps no registry."""
    return read_target(
        what,
        exe,
        way,
        lambda job: (job, read_one(job, chosen, with_runtime)),
        is_whole=lambda read: not read[1].missing,
    )


def read_members(members: Members, way: Way, chosen: rankset.RankSet, with_runtime: bool) -> tuple[Subject, Stacks]:
    """Of all processes of a job; a rank's stack comes from the process where it is.

    Raises `UsageError` for ranks that none of them has.
    """
    from ..job.read_processes import homes_of, read_each, subject_of_all  # late: not for one process

    readings = read_each(members, way, lambda job, _: (job, read(job, chosen, with_runtime)))
    homes = homes_of(job for job, _ in readings)
    subject = subject_of_all(members, [job for job, _ in readings], homes)
    rankset.check(chosen, subject.table, several=len(members.found) > 1)
    by_job = {id(job): stacks for job, stacks in readings}
    calls = {rank: by_job[id(job)].calls[rank] for rank, job in homes.items() if rank in by_job[id(job)].calls}
    missing = {rank: by_job[id(job)].missing[rank] for rank, job in homes.items() if rank in by_job[id(job)].missing}
    return subject, Stacks(calls, missing)


def flat(stacks: GroupedStacks) -> Iterator[str]:
    """Yield the lines of equal stacks together."""
    for ranks, calls in stacks.groups:
        yield f"{of_ranks(rankset.compact(ranks))}:"
        for level, call in enumerate(reversed(calls)):
            yield f"  #{level:<2} {label(call)}"


def folded(stacks: GroupedStacks) -> Iterator[str]:
    """One line per distinct stack of functions, outermost first, and how many ranks are there."""
    counts: dict[str, int] = {}
    for ranks, calls in stacks.groups:
        line = ";".join(call.function.replace(";", ":") for call in calls)
        counts[line] = counts.get(line, 0) + len(ranks)
    for line, count in sorted(counts.items()):
        yield f"{line} {count}"


def show(subject: Subject, stacks: GroupedStacks, lines: Iterator[str]) -> None:
    """Print stacks as text."""
    from rich.text import Text  # late: not for --json, nor for --folded

    from ..output.provenance import print_how
    from ..terminal.console import console

    screen = console()
    there = subject.table.ranks
    screen.print(Text(f"{harmless(subject.description)}: {stacks.count} of {len(there)} {noun(there)}"))
    print_how(subject, screen)
    for line in lines:
        screen.print(Text(harmless(line)), soft_wrap=True)
    for sentence, ranks in by_reason(stacks.missing):
        screen.print(
            Text(f"! {of_ranks(rankset.compact(ranks))}: {harmless(sentence)}", style="bold red"), soft_wrap=True
        )


def as_json(subject: Subject, stacks: GroupedStacks) -> dict[str, object]:
    """The documented form: distinct stacks with their ranks, innermost call last."""
    return {
        "schema": SCHEMA,
        "target": subject.description,
        "job": harmless(subject.table.job_id),
        "taken": subject.taken,
        "how": subject.how,
        "rank_count": subject.table.rank_count,
        "stacks": [
            {
                "ranks": rankset.compact(ranks),
                "calls": [
                    {"function": call.function, "file": call.file, "line": call.line, "library": call.library}
                    for call in calls
                ],
            }
            for ranks, calls in stacks.groups
        ],
        "missing": [
            {"ranks": rankset.compact(ranks), "reason": sentence} for sentence, ranks in by_reason(stacks.missing)
        ],
    }
