"""`inspector waits`: who waits for whom, and which ranks can never go on.

Takes the calls that ranks publish (peer, tag, communicator); gives the wait-for graph, its cycles, and for collectives
the ranks that are not in the call yet. What a rank does not publish is not guessed: a receive from any rank waits for
all others.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from pieglobalsfind.commands.wording import waiting_text
from pieglobalsfind.model import EXITED, MIGRATED_OUT, Rank, RankTable
from pieglobalsfind.rankset import compact

from .console import console
from .job import Job, checked, open_job, say_warnings, with_waits
from .render import add_row, heading, new_table, ranks_text
from .text import harmless

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
    """`peers`: a waiting rank and the one rank that can let it go on. `cycles` of these never end by themselves."""

    peers: dict[int, int]
    cycles: tuple[tuple[int, ...], ...]
    collectives: tuple[Collective, ...]
    of_any: tuple[int, ...]


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    waits = commands.add_parser(
        "waits",
        help="who waits for whom: cycles, and the ranks that a collective lacks",
        description="Show what every rank waits for, cycles of ranks that wait for one another, and the ranks that a "
        "collective call still lacks. Peers are told as ranks of MPI_COMM_WORLD.",
        epilog="exit status: 0 done, 1 nobody waits, 2 bad call or unreadable target",
    )
    waits.add_argument("target", metavar="PID|CORE", help="a running process, or a core file")
    waits.add_argument("--exe", metavar="FILE", help="the program that left the core file")
    waits.add_argument("--json", action="store_true", help="as JSON (docs/waits-schema.md)")
    waits.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with checked(open_job(options.target, options.exe)) as opened:
        job = with_waits(opened)
    say_warnings(job)
    found = find(job.table)
    if options.json:
        json.dump(as_json(job, found), sys.stdout, indent=1)
        print(flush=True)
    else:
        show(job, found)
    return 0 if any(rank.waiting for rank in job.table.ranks) else 1


def is_collective(call: str) -> bool:
    return call.startswith(COLLECTIVES)


def find(table: RankTable) -> Waits:
    """The wait-for graph of one moment."""
    waiting = [rank for rank in table.ranks if rank.waiting is not None and rank.state not in (EXITED, MIGRATED_OUT)]
    world = {rank.rank for rank in table.ranks}
    single = [rank for rank in waiting if rank.waiting is not None and not is_collective(rank.waiting.call)]
    peers = {one.rank: one.waiting.peer for one in single if one.waiting is not None and one.waiting.peer in world}
    of_any = tuple(one.rank for one in single if one.waiting is not None and one.waiting.peer == ANY)
    return Waits(peers, tuple(cycles(peers)), tuple(collectives(waiting, table)), of_any)


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


def show(job: Job, found: Waits) -> None:
    screen = console()
    heading(screen, "Waits", f"{harmless(job.target.description)}, {source(job)}")
    table = new_table(("ranks", "wait in"))
    rows: dict[str, list[int]] = {}
    for rank in job.table.ranks:
        rows.setdefault(waiting_text(rank.waiting) if rank.waiting else f"({rank.state})", []).append(rank.rank)
    for text, ranks in rows.items():
        add_row(table, (ranks_text(ranks), harmless(text)))
    screen.print(table)
    for sentence in sentences(found):
        screen.print(Text(harmless(sentence), style="bold red" if sentence.startswith("deadlock") else ""))


def source(job: Job) -> str:
    return "as ranks publish them" if job.table.evidence.tier == "registry" else "by the calls on their stacks"


def sentences(found: Waits) -> Iterator[str]:
    for cycle in found.cycles:
        chain = " -> ".join(map(str, (*cycle, cycle[0])))
        yield f"deadlock: ranks {compact(cycle)} wait for one another, {chain}"
    for one in found.collectives:
        lacking = f"still lacks {compact(one.lacking)}" if one.lacking else "lacks nobody of this process"
        yield f"{one.call}: {compact(one.inside)} are in it, it {lacking} (if they belong to its communicator)"
    if found.of_any:
        yield f"{compact(found.of_any)} wait for a message of any rank"


def as_json(job: Job, found: Waits) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "target": job.target.description,
        "taken": job.taken,
        "waits": [{"rank": rank, "for": peer} for rank, peer in found.peers.items()],
        "any": compact(found.of_any),
        "cycles": [list(one) for one in found.cycles],
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
