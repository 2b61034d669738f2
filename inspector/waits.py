"""`inspector waits`: who waits for whom, and which ranks can never go on.

Takes the calls that ranks publish (peer, tag, communicator), of one process or of a whole job; gives the wait-for
graph, its cycles, and for collectives the ranks that are not in the call yet. What a rank does not publish is not
guessed: a receive from any rank waits for all others. A cycle in a running job is told only if all its ranks waited at
one moment. Who belongs to a communicator is not published, so no cycle goes through a collective; that all ranks of the
job wait is told for that.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pieglobalsfind.decoders.rank_state import read_again
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs import Members
from pieglobalsfind.model import BLOCKED, EXITED, MIGRATED_OUT, Rank, RankTable, Waiting
from pieglobalsfind.rankset import compact
from pieglobalsfind.wording import waiting_text

from .job import Job, Subject, add_target, checked, job_named, open_job, say_warnings, subject_of, with_waits
from .members import homes_of, read_each, subject_of_all
from .text import harmless, of_ranks

SCHEMA = "ranklens-waits-1"
COLLECTIVES = (
    "MPI_Allgather",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Comm_",
    "MPI_Exscan",
    "MPI_Finalize",
    "MPI_Gather",
    "MPI_Init",
    "MPI_Reduce",
    "MPI_Scan",
    "MPI_Scatter",
)
ANY, NONE = -1, -2  # Waiting.peer


@dataclass(frozen=True)
class Collective:
    """A collective call that some ranks are in, and of the communicator's possible members those that are not."""

    call: str
    communicator: int
    inside: tuple[int, ...]
    lacking: tuple[int, ...]


@dataclass(frozen=True)
class Waits:
    """`peers`: a waiting rank and the one rank that can let it go on. `cycles` of these never end by themselves.

    `standstill`: the job's ranks that have not exited, if every one of them is blocked.
    """

    peers: dict[int, int]
    cycles: tuple[tuple[int, ...], ...]
    collectives: tuple[Collective, ...]
    of_any: tuple[int, ...]
    standstill: tuple[int, ...]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Show what every rank waits for, cycles of ranks that wait for one another, and the ranks that a "
        "collective call still lacks. Peers are told as ranks of MPI_COMM_WORLD."
    )
    parser.epilog = "exit status: 0 done, 1 nobody waits, 2 bad call or unreadable target"
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="as JSON (docs/waits-schema.md)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    members = job_named(options.job, options.target, options.exe, False)
    if members is not None:
        subject, found = read_members(members)
    else:
        with checked(open_job(options.target, options.exe)) as opened:
            job = with_waits(opened)
            subject, found = subject_of(job), confirmed(find(job.table), dict.fromkeys(numbers(job), job))
        say_warnings(job)
    if options.json:
        json.dump(as_json(subject, found), sys.stdout, indent=1)
        print(flush=True)
    else:
        show(subject, found)
    return 0 if any(rank.waiting for rank in subject.table.ranks) else 1


def numbers(job: Job) -> Iterator[int]:
    return (one.rank for one in job.table.ranks)


def read_members(members: Members) -> tuple[Subject, Waits]:
    """Of all processes of a job together; a rank's wait is told by the process where it is."""
    jobs = read_each(members, with_waits)
    homes = homes_of(jobs)
    subject = subject_of_all(members, jobs, homes)
    return subject, confirmed(find(subject.table), homes)


def confirmed(found: Waits, homes: Mapping[int, Job]) -> Waits:
    """Without what never was: tables of running processes, and ranks in them, are read one after the other.

    Who was not switched between his first reading and now waited at the moment between all firsts and all seconds.
    """

    def all_wait(ranks: tuple[int, ...]) -> bool:
        return all(rank in homes and still_waits(homes[rank], rank) for rank in ranks)

    cycles = tuple(one for one in found.cycles if all_wait(one))
    return replace(found, cycles=cycles, standstill=found.standstill if all_wait(found.standstill) else ())


def still_waits(job: Job, number: int) -> bool:
    before = next(one for one in job.table.ranks if one.rank == number)
    if not job.target.is_live or not before.record:
        return True
    try:
        now = read_again(job.target, job.table, before)
    except RanklensError:
        return False
    return (now.state, now.waiting, now.switches) == (before.state, before.waiting, before.switches)


def is_collective(call: str) -> bool:
    return call.startswith(COLLECTIVES)


def find(table: RankTable) -> Waits:
    """The wait-for graph of one moment."""
    waiting = [rank for rank in table.ranks if rank.waiting is not None and rank.state not in (EXITED, MIGRATED_OUT)]
    world = {rank.rank for rank in table.ranks}
    single = [rank for rank in waiting if rank.waiting is not None and not is_collective(rank.waiting.call)]
    peers = {one.rank: one.waiting.peer for one in single if one.waiting is not None and one.waiting.peer in world}
    of_any = tuple(one.rank for one in single if one.waiting is not None and one.waiting.peer == ANY)
    blocked = {rank.rank for rank in single if rank.state == BLOCKED}  # others have got what they waited for
    stuck = {rank: peer for rank, peer in peers.items() if rank in blocked}
    return Waits(peers, tuple(cycles(stuck)), tuple(collectives(waiting, table)), of_any, standstill(table))


def standstill(table: RankTable) -> tuple[int, ...]:
    """All of the job's ranks that have not exited, if all are known and blocked; else none."""
    living = [rank for rank in table.ranks if rank.state != EXITED]
    if len(table.ranks) < table.rank_count or any(rank.state != BLOCKED for rank in living):
        return ()
    return tuple(rank.rank for rank in living)


def cycles(peers: dict[int, int]) -> Iterator[tuple[int, ...]]:
    """Every cycle once, from its lowest rank on: each rank waits for one, so a walk of two colours finds them."""
    done: set[int] = set()
    for start in sorted(peers):
        path: list[int] = []
        at = start
        while at in peers and at not in done and at not in path:
            path.append(at)
            at = peers[at]
        if at in path:
            cycle = path[path.index(at) :]
            lowest = cycle.index(min(cycle))
            yield tuple(cycle[lowest:] + cycle[:lowest])
        done.update(path)


def collectives(waiting: list[Rank], table: RankTable) -> Iterator[Collective]:
    """Ranks in one collective of one communicator together; lacking are those that are in no such call."""
    inside: dict[tuple[str, int], list[int]] = {}
    for rank in waiting:
        if rank.waiting is not None and is_collective(rank.waiting.call):
            inside.setdefault((rank.waiting.call, rank.waiting.communicator), []).append(rank.rank)
    gone = {rank.rank for rank in table.ranks if rank.state in (EXITED, MIGRATED_OUT)}
    for (call, communicator), ranks in inside.items():
        lacking = [rank.rank for rank in table.ranks if rank.rank not in ranks and rank.rank not in gone]
        yield Collective(call, communicator, tuple(ranks), tuple(lacking))


def show(subject: Subject, found: Waits) -> None:
    from rich.text import Text  # late: not for --json

    from .console import console
    from .listing import Listing
    from .render import MOST_RANK_ROWS, by_cells, heading, ranks_text

    screen = console()
    heading(screen, "Waits", f"{harmless(subject.description)}, {source(subject)}")
    table = Listing(("ranks", "wait in"))
    rows = by_cells((rank.rank, (waits_text(rank, waiting_text),)) for rank in subject.table.ranks)
    if is_long := len(rows) > MOST_RANK_ROWS:
        rows = by_cells((rank.rank, (waits_text(rank, lambda waiting: waiting.call),)) for rank in subject.table.ranks)
    for (text,), ranks in rows.items():
        table.add((ranks_text(ranks), harmless(text)))
    screen.print(table)
    if is_long:
        screen.print(Text("  whom each of so many ranks waits for: see --json", style="dim"))
    for sentence in sentences(found):
        screen.print(Text(harmless(sentence), style="bold red" if sentence.startswith("deadlock") else ""))


def waits_text(rank: Rank, wording: Callable[[Waiting], str]) -> str:
    return wording(rank.waiting) if rank.waiting else f"({rank.state})"


def source(subject: Subject) -> str:
    return "as ranks publish them" if subject.table.evidence.tier == "registry" else "by the calls on their stacks"


def sentences(found: Waits) -> Iterator[str]:
    for cycle in found.cycles:
        chain = " -> ".join(map(str, (*cycle, cycle[0])))
        yield f"deadlock: ranks {compact(cycle)} wait for one another, {chain}"
    if found.standstill:
        waits = "waits" if len(found.standstill) == 1 else "wait"
        whom = f"{of_ranks(compact(found.standstill))}, all that have not exited,"
        yield f"standstill: {whom} {waits}; only a message that is still on its way could let one go on"
    for one in found.collectives:
        lacking = f"still lacks {compact(one.lacking)}" if one.lacking else "lacks nobody that is known here"
        inside = f"{of_ranks(compact(one.inside))} {'is' if len(one.inside) == 1 else 'are'} in it"
        yield f"{one.call}: {inside}, it {lacking} (if they belong to its communicator)"
    if found.of_any:
        waits = "waits" if len(found.of_any) == 1 else "wait"
        yield f"{of_ranks(compact(found.of_any))} {waits} for a message of any rank"


def as_json(subject: Subject, found: Waits) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "target": subject.description,
        "taken": subject.taken,
        "waits": [{"rank": rank, "for": peer} for rank, peer in found.peers.items()],
        "any": compact(found.of_any),
        "cycles": [list(one) for one in found.cycles],
        "standstill": compact(found.standstill),
        "collectives": [
            {
                "call": one.call,
                "communicator": one.communicator,
                "inside": compact(one.inside),
                "lacking": compact(one.lacking),
            }
            for one in found.collectives
        ],
    }
