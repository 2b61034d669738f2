"""`inspector waits`: which rank waits for which, and which can never continue.

Takes the calls that ranks publish (peer, tag, communicator and its members), of one process or of a whole job; shows
the wait-for graph, its cycles, and for collectives the ranks that are not in the call yet. A cycle in a running job is
told only if all its ranks, and all that are in a collective of it, waited at one moment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pieglobalsfind.debugger.wording import state_word, waiting_text
from pieglobalsfind.decoders.communicators import Communicators, communicators, of_world
from pieglobalsfind.jobs.members import Members
from pieglobalsfind.model import Rank, Waiting
from pieglobalsfind.ranks.rankset import compact

from ..analysis.confirmed_waits import waits_of
from ..analysis.wait_graph import Collective, Waits
from ..collect import mpi_option
from ..job.job import Job, Subject, print_warnings, say_warnings, subject_of, with_waiting_calls
from ..job.read_processes import homes_of, read_each, subject_of_all
from ..job.reading import Way, add_way, read_target, way_of
from ..job.target_option import add_target, job_named
from ..output.wait_chains import Chains, chains
from ..terminal.forms import add_tsv, print_json
from ..terminal.text import harmless, of_ranks

SCHEMA = "ranklens-waits-1"
MOST_LINKS = 24  # lines of ranks that wait for others


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show what every rank waits for, cycles of ranks that wait for one another, and the ranks that "
        "have not entered a collective call. Peers are numbered as ranks of MPI_COMM_WORLD."
    )
    parser.epilog = "exit status: 0 done, 1 no rank waits, 2 bad call or unreadable target"
    add_target(parser)
    mpi_option.add_to(parser)
    add_way(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON (docs/waits-schema.md)")
    add_tsv(form)
    form.add_argument("--dot", action="store_true", help="as a graph for Graphviz: --dot | dot -Tsvg")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector waits`; returns the exit status."""
    if mpi_option.is_collector(options):
        return mpi_option.guarded(lambda: _run_collector(options))
    members = job_named(options.job, options.target, options.exe)
    if members is not None:
        subject, waits = read_members(members, way_of(options))
    else:
        job, (subject, waits) = read_target(
            options.target,
            options.exe,
            way_of(options),
            read_process,
            is_whole=lambda read: True,
            with_requests=True,
        )
        say_warnings(job)
    return _print(subject, waits, options)


def _run_collector(options: argparse.Namespace) -> int:
    from ..collect import collectors, whole_job  # late: only this needs them

    with collectors.gathered(whole_job.reading_of_waits(options.job or ""), mpi_option.timeout_of(options)) as gathered:
        if gathered.findings is None:
            return 0
        report = whole_job.finished(gathered.findings, gathered.name, gathered.count)
        print_warnings(report.subject)
        assert report.waits is not None
        return _print(report.subject, report.waits, options)


def _print(subject: Subject, waits: Waits, options: argparse.Namespace) -> int:
    if options.json:
        print_json(as_json(subject, waits))
    elif options.dot:
        from ..output.wait_picture import as_dot, picture  # late: only this draws

        print(*as_dot(picture(subject.table, waits, chains(subject.table, waits))), sep="\n", flush=True)
    else:
        show(subject, waits, options.tsv)
    return 0 if any(rank.waiting for rank in subject.table.ranks) else 1


def numbers(job: Job) -> Iterator[int]:
    """Yield the ranks of a process."""
    return (rank.rank for rank in job.table.ranks)


def read_one(opened: Job) -> tuple[Job, Communicators]:
    """Read a process's waiting calls and communicators."""
    job = with_waiting_calls(opened)
    return job, communicators(job.target, job.table)


def read_process(opened: Job) -> tuple[Job, tuple[Subject, Waits]]:
    """Of one process, or a file of one."""
    job, groups = read_one(opened)
    return job, with_world_ranks(subject_of(job), groups, dict.fromkeys(numbers(job), job))


def read_members(members: Members, way: Way) -> tuple[Subject, Waits]:
    """Of all processes of a job together; a rank's wait comes from the process where it is."""
    read = read_each(members, way, lambda job, _: read_one(job), with_requests=True)
    jobs = [job for job, _ in read]
    homes = homes_of(jobs)
    groups = {number: ranks for _, ranks_there in read for number, ranks in ranks_there.items()}
    return with_world_ranks(subject_of_all(members, jobs, homes), groups, homes)


def with_world_ranks(subject: Subject, groups: Communicators, homes: Mapping[int, Job]) -> tuple[Subject, Waits]:
    """The waits, and the subject with peers as ranks of MPI_COMM_WORLD."""
    waits = waits_of(subject.table, groups, homes)
    return replace(subject, table=of_world(subject.table, groups)), waits


def show(subject: Subject, waits: Waits, only_tables: bool) -> None:
    """Print waits as text."""
    from rich.text import Text  # late: not for --json

    from ..output.adaptive_table import Listing
    from ..output.provenance import print_how
    from ..output.table_cells import MOST_RANK_ROWS, by_cells, has_records, heading, ranks_cell
    from ..terminal.console import console

    screen = console(only_tables)
    print_how(subject, screen)
    heading(screen, "Waits", f"{harmless(subject.description)}, {source(subject)}")
    for sentence in map(deadlock, (cycle.ranks for cycle in waits.cycles)):
        screen.print(Text(harmless(sentence), style="bold red"))
    for sentence in chain_sentences(chains(subject.table, waits)):
        screen.print(Text(harmless(sentence)))
    table = Listing(("ranks", "wait in"))

    def wording(waiting: Waiting) -> str:
        members = waits.members.get(waiting.communicator)
        part = members is not None and len(members) < subject.table.rank_count
        return waiting_text(waiting) + (f", in the communicator of {compact(sorted(members or ()))}" if part else "")

    rows = by_cells((rank.rank, (_waits_text(rank, wording),)) for rank in subject.table.ranks)
    if len(rows) > MOST_RANK_ROWS and not has_records(screen):
        rows = by_cells((rank.rank, (_waits_text(rank, lambda waiting: waiting.call),)) for rank in subject.table.ranks)
    for (text,), ranks in rows.items():
        table.add((ranks_cell(ranks, screen), harmless(text)))
    screen.print(table)
    for sentence in sentences(waits):
        screen.print(Text(harmless(sentence)))


def _waits_text(rank: Rank, wording: Callable[[Waiting], str]) -> str:
    return wording(rank.waiting) if rank.waiting else f"({state_word(rank)})"


def source(subject: Subject) -> str:
    """Return where the waiting calls were read."""
    return "as ranks publish them" if subject.table.evidence.tier == "registry" else "by the calls on their stacks"


def chain_sentences(all_chains: Chains) -> Iterator[str]:
    """What waits for what: cycles first, then roots, then who waits for these, near ones first."""
    for root in all_chains.roots:
        waits = "1 rank waits" if root.waiters == 1 else f"{root.waiters} ranks wait"
        where = f" in {root.call}" if root.call else ""
        yield f"{waits} for {of_ranks(compact(root.ranks))} in the end, {root.state or 'unknown'}{where}"
    yield from (f"  {link.text}" for link in all_chains.links[:MOST_LINKS])
    if len(all_chains.links) > MOST_LINKS:
        yield f"  and {len(all_chains.links) - MOST_LINKS} more groups of ranks: see --json"


def sentences(waits: Waits) -> Iterator[str]:
    """Yield what is found, worst first, one sentence each."""
    for cycle, reason in waits.unsure:
        yield f"{chain_of(cycle.ranks)} would be a deadlock if no message were on its way: {reason}"
    if waits.standstill:
        verb = "waits" if len(waits.standstill) == 1 else "wait"
        ranks = f"{of_ranks(compact(waits.standstill))}, all that have not exited,"
        yield f"standstill: {ranks} {verb}; only a message that is still on its way could let one go on"
    yield from map(collective, waits.collectives)
    if waits.of_any:
        verb = "waits" if len(waits.of_any) == 1 else "wait"
        yield f"{of_ranks(compact(waits.of_any))} {verb} for a message of any rank"
    if waits.untold:
        verb, whose = ("waits", "its communicator") if len(waits.untold) == 1 else ("wait", "their communicators")
        waiting = f"which rank {of_ranks(compact(waits.untold))} {verb} for"
        yield f"{waiting} is not known: the members of {whose} can't be read"
    yield from _without_arguments(waits)


def _without_arguments(waits: Waits) -> Iterator[str]:
    reasons: dict[str, list[int]] = {}
    for rank, reason in waits.unknown:
        reasons.setdefault(reason, []).append(rank)
    for reason, ranks in reasons.items():
        yield f"not known of the {'call' if len(ranks) == 1 else 'calls'} of {of_ranks(compact(ranks))}: {reason}"


def chain_of(ranks: tuple[int, ...]) -> str:
    """Return a cycle as `13 -> 14 -> 13`."""
    return " -> ".join(map(str, (*ranks, ranks[0])))


def deadlock(ranks: tuple[int, ...]) -> str:
    """Return the sentence for a cycle."""
    chain = chain_of(ranks)
    if len(ranks) == 1:
        return f"deadlock: rank {ranks[0]} waits for itself, {chain}"
    return f"deadlock: ranks {compact(ranks)} wait for one another, {chain}"


def collective(operation: Collective) -> str:
    """`MPI_Barrier: entered by 0; missing: 1`, `MPI_Bcast: entered by 1; 0 is not in it, or has left it`."""
    words = f"{operation.call}: entered by {compact(operation.inside)}"
    others = [rank for rank in operation.lacking if rank not in operation.needed]
    if operation.needed:
        words += f"; missing: {compact(operation.needed)}"
    elif operation.of_all and not operation.lacking:
        words += "; no rank known here is missing"
    gone = [rank for rank in operation.needed if rank in operation.exited]
    if gone:
        words += f" ({compact(gone)} {'has' if len(gone) == 1 else 'have'} exited)"
    if operation.needed and operation.of_all and operation.members is None:
        words += " (if they belong to its communicator)"
    if others:
        be, have = ("is", "has") if len(others) == 1 else ("are", "have")
        belong = "" if operation.members is not None else " or its communicator"
        words += f"; {compact(others)} {be} not in it{belong}, or {have} left it"
    members = operation.members or ()
    elsewhere = len(members) - len(operation.inside) - len(operation.lacking) if operation.members is not None else 0
    return f"{words}; {elsewhere} of its {len(members)} ranks are in other processes" if elsewhere else words


def as_json(subject: Subject, waits: Waits) -> dict[str, object]:
    """Return waits as JSON has them."""
    return {
        "schema": SCHEMA,
        "target": subject.description,
        "taken": subject.taken,
        "how": subject.how,
        "waits": [{"rank": rank, "for": peer} for rank, peer in waits.peers.items()],
        "any": compact(waits.of_any),
        "untold": compact(waits.untold),
        "chains": [
            {"ranks": compact(link.ranks), "for": link.peer, "distance": link.distance, "call": link.call}
            for link in chains(subject.table, waits).links
        ],
        "cycles": [list(cycle.ranks) for cycle in waits.cycles],
        "unsure": [{"ranks": list(cycle.ranks), "reason": reason} for cycle, reason in waits.unsure],
        "unknown": [{"rank": rank, "reason": reason} for rank, reason in waits.unknown],
        "standstill": compact(waits.standstill),
        "collectives": [
            {
                "call": operation.call,
                "communicator": operation.communicator,
                "members": None if operation.members is None else compact(sorted(operation.members)),
                "inside": compact(operation.inside),
                "lacking": compact(operation.lacking),
                "exited": compact(operation.exited),
                "needed": compact(operation.needed),
            }
            for operation in waits.collectives
        ],
    }
