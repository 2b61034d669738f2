"""A job's load as tables and sentences: ranks, processing elements, messages, and what balancers would do.

Takes `Loads` and proposals; gives rows of text, sentences, and what of them rich prints. Figures keep three digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional, Union

from rich.console import Console
from rich.text import Text

from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact

from ..load.balance import Proposal
from ..load.loads import SAMPLED, ElementLoad, Loads, Matrix, Place, RankLoad, Traffic, measured, received_by, sent_by
from ..load.sampling_error import surely_exceeds
from ..terminal.text import byte_count, harmless, of_ranks
from .adaptive_table import Listing
from .table_cells import has_records, heading

MOST_ROWS = 40  # ranks on a terminal; the busiest
MOST_MATRIX = 16  # ranks whose messages are a matrix
MOST_PAIRS = 24
MOST_MOVES = 24
MOST_ELEMENTS = 1 << 16  # of one process, for the order of places
HELD = 0.8  # of the time that its ranks run, an element should have a processor
SHORTEST = 0.05  # seconds; of less it is not printed
SLOW = 1.2  # times the mean that a rank must run to be named
RANK_COLUMNS = (
    "rank", "element", "busy", "share", "of mean", "switches/s", "sent", "bytes sent", "received",
    "bytes received",
)  # fmt: skip
ELEMENT_COLUMNS = ("element", "ranks", "busy", "idle", "not divided", "processor", "thread")


def print_loads(screen: Console, loads: Loads, proposals: Sequence[Proposal]) -> None:
    """Print everything."""
    screen.print(Text(harmless(f"{loads.how}; {loads.seconds:.3g} s"), style="dim"))
    for sentence in sentences(loads):
        screen.print(Text(harmless(sentence), style="bold"))
    heading(screen, "Ranks", "seconds that each had its processing element; messages, those of collectives included")
    cells = RankCells(loads)
    shown = loads.ranks if has_records(screen) else busiest(loads.ranks)[:MOST_ROWS]
    _print_known(screen, RANK_COLUMNS, [cells.of(rank) for rank in shown])
    if len(shown) < len(loads.ranks):
        screen.print(Text(f"and {len(loads.ranks) - len(shown)} ranks that run less: see --json", style="dim"))
    if loads.elements:
        heading(screen, "Processing elements", "seconds")
        _print_known(screen, ELEMENT_COLUMNS, [element_cells(loads, element) for element in loads.elements])
    _print_traffic(screen, loads)
    _print_proposals(screen, proposals)
    for note in loads.notes:
        screen.print(Text(harmless(note), style="dim"))


def _print_known(screen: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of numbers. A terminal gets a sentence in place of the columns in which nothing is known."""
    unknown = (
        set() if has_records(screen) else {at for at in range(len(columns)) if all(row[at] == "?" for row in rows)}
    )
    kept = [at for at in range(len(columns)) if at not in unknown]
    table = Listing([columns[at] for at in kept], range(len(kept)))
    for row in rows:
        table.add(row[at] for at in kept)
    screen.print(table)
    if unknown and rows:
        names = ", ".join(columns[at] for at in sorted(unknown))
        screen.print(Text(f"  not known of any: {names}", style="dim"))


def busiest(ranks: Sequence[RankLoad]) -> list[RankLoad]:
    """Those that run most first; those of which that is not known last."""
    return sorted(ranks, key=lambda rank: (isinstance(rank.busy, Absent), -_or_zero(rank.busy), rank.rank))


def _or_zero(value: Union[float, Absent]) -> float:
    return 0.0 if isinstance(value, Absent) else value


def mean_busy(loads: Loads) -> Optional[float]:
    """The ranks' mean, None if no rank's time is known."""
    times = measured(rank.busy for rank in loads.ranks)
    return sum(times) / len(times) if times else None


def sentences(loads: Loads) -> Iterator[str]:
    """What is unusual: ranks that run longer than others, and elements that others exceed."""
    mean = mean_busy(loads)
    if mean:
        slow = [rank for rank in busiest(loads.ranks) if _is_slow(loads, rank, mean)]
        if slow and len(slow) < len(loads.ranks):
            most = _or_zero(slow[0].busy)
            others = (
                f", and {of_ranks(compact(sorted(rank.rank for rank in slow[1:])))} over {SLOW}" if slow[1:] else ""
            )
            yield f"rank {slow[0].rank} ran {most / mean:.2f} times as long as the mean of {mean:.3g} s{others}"
        elif loads.looks:
            yield (
                f"{loads.looks} looks show no rank that ran over {SLOW} times as long as the mean of {mean:.3g} s: "
                "smaller differences may be chance, and need more looks (--duration)"
            )
        else:
            yield f"no rank ran over {SLOW} times as long as the mean of {mean:.3g} s"
    for element in loads.elements:
        yield from _element_sentences(element)


def _is_slow(loads: Loads, rank: RankLoad, mean: float) -> bool:
    """Whether a rank ran for much longer than the mean, and not only by chance where it was sampled."""
    busy = _or_zero(rank.busy)
    if busy <= SLOW * mean or not loads.looks:
        return busy > SLOW * mean
    seen = round(loads.looks * busy / loads.seconds)
    return surely_exceeds(seen, loads.looks, SLOW * mean / loads.seconds, len(loads.ranks))


def _element_sentences(element: ElementLoad) -> Iterator[str]:
    place, idle, elapsed, processor = place_text(element.place), element.idle, element.elapsed, element.processor
    if isinstance(idle, Absent) or isinstance(elapsed, Absent) or not elapsed:
        return
    if idle > elapsed / 2:
        yield f"element {place} had no rank to run for {100 * idle / elapsed:.0f} % of the time"
    busy = elapsed - idle
    if not isinstance(processor, Absent) and busy > SHORTEST and processor < HELD * busy:
        yield (
            f"element {place} had a processor for {100 * processor / busy:.0f} % of the time that its ranks ran: other "
            "programs use the machine, or ranks wait in the kernel"
        )


def place_text(place: Place) -> str:
    """`process.element`, as `0.1`."""
    return f"{place[0]}.{place[1]}"


def seconds_text(value: Union[float, Absent]) -> str:
    """Seconds, `?` if unknown."""
    return "?" if isinstance(value, Absent) else f"{value:.3f}"


class RankCells:
    """The rows of one reading's ranks."""

    def __init__(self, loads: Loads) -> None:
        self._seconds = loads.seconds
        self._mean = mean_busy(loads)
        self._sent = self._received = None
        if not isinstance(loads.traffic, Absent):
            self._sent, self._received = sent_by(loads.traffic), received_by(loads.traffic)

    def of(self, rank: RankLoad) -> tuple[str, ...]:
        """A rank's row, in the order of `RANK_COLUMNS`."""
        busy = rank.busy
        share = "?" if isinstance(busy, Absent) or not self._seconds else f"{100 * busy / self._seconds:.1f} %"
        ratio = "?" if isinstance(busy, Absent) or not self._mean else f"{busy / self._mean:.2f}"
        return (
            str(rank.rank),
            place_text(rank.place),
            seconds_text(busy),
            share,
            ratio,
            self.switches_per_second(rank),
            *_traffic_cells(self._sent, rank.rank),
            *_traffic_cells(self._received, rank.rank),
        )

    def keys(self, rank: RankLoad) -> tuple[float, ...]:
        """What the row's cells are sorted by; -1 stands for what is not known."""
        busy = -1.0 if isinstance(rank.busy, Absent) else rank.busy
        switches = -1.0 if isinstance(rank.switches, Absent) else float(rank.switches)
        place = rank.place[0] * MOST_ELEMENTS + rank.place[1]
        ends = (*_traffic_keys(self._sent, rank.rank), *_traffic_keys(self._received, rank.rank))
        return (float(rank.rank), float(place), busy, busy, busy, switches, *ends)

    def switches_per_second(self, rank: RankLoad) -> str:
        """How often it was switched to."""
        unknown = isinstance(rank.switches, Absent) or not self._seconds
        return "?" if unknown else f"{rank.switches / self._seconds:.0f}"  # type: ignore[operator]


def _traffic_cells(traffic: Optional[dict[int, Traffic]], rank: int) -> tuple[str, str]:
    if traffic is None:
        return "?", "?"
    each = traffic.get(rank, Traffic())
    return str(each.all_messages), byte_count(each.all_bytes)


def _traffic_keys(traffic: Optional[dict[int, Traffic]], rank: int) -> tuple[float, float]:
    if traffic is None:
        return -1.0, -1.0
    each = traffic.get(rank, Traffic())
    return float(each.all_messages), float(each.all_bytes)


def element_cells(loads: Loads, element: ElementLoad) -> tuple[str, ...]:
    """A processing element's row; busy is what was not idle."""
    ranks = compact([rank.rank for rank in loads.ranks if rank.place == element.place])
    idle, elapsed = element.idle, element.elapsed
    busy = "?" if isinstance(idle, Absent) or isinstance(elapsed, Absent) else f"{max(elapsed - idle, 0):.3f}"
    return (
        place_text(element.place),
        ranks,
        busy,
        seconds_text(idle),
        seconds_text(element.undivided),
        seconds_text(element.processor),
        str(element.kernel_thread or "?"),
    )


# ---- messages ----


def _print_traffic(screen: Console, loads: Loads) -> None:
    traffic = loads.traffic
    if isinstance(traffic, Absent):
        if loads.source != SAMPLED:
            screen.print(Text(harmless(f"no messages: {traffic.reason}"), style="dim"))
        return
    ranks = [rank.rank for rank in loads.ranks]
    if not traffic:
        screen.print(Text("no messages", style="dim"))
        return
    if len(ranks) <= MOST_MATRIX and not has_records(screen):
        heading(screen, "Messages", "by sender (rows) and receiver: how many, and bytes of data")
        matrix = Listing(("from \\ to", *map(str, ranks)), range(len(ranks) + 1))
        for sender in ranks:
            matrix.add((str(sender), *(_pair_text(traffic.get((sender, receiver))) for receiver in ranks)))
        screen.print(matrix)
        return
    heading(screen, "Messages", "the pairs of ranks with most bytes")
    pairs = Listing(("from", "to", "messages", "bytes", "of collectives", "bytes"), range(6))
    heaviest = heaviest_pairs(traffic)
    for (sender, receiver), each in heaviest if has_records(screen) else heaviest[:MOST_PAIRS]:
        cells = (each.messages, each.bytes, each.collective_messages, each.collective_bytes)
        pairs.add((str(sender), str(receiver), *map(str, cells)))
    screen.print(pairs)


def heaviest_pairs(traffic: Matrix) -> list[tuple[tuple[int, int], Traffic]]:
    """Pairs of ranks, those with most bytes first."""
    return sorted(traffic.items(), key=lambda pair: (-pair[1].all_bytes, -pair[1].all_messages, pair[0]))


def _pair_text(traffic: Optional[Traffic]) -> str:
    return f"{traffic.all_messages}, {byte_count(traffic.all_bytes)}" if traffic else "-"


# ---- balance ----


def _print_proposals(screen: Console, proposals: Sequence[Proposal]) -> None:
    if not proposals:
        return
    heading(screen, "Balance", "what a load balancer would do with these loads")
    for proposal in proposals:
        screen.print(Text(proposal_sentence(proposal)))
        if proposal.moves:
            screen.print(Text(f"  {moves_text(proposal)}", style="dim"))


def proposal_sentence(proposal: Proposal) -> str:
    """`refine: 2 ranks move, 1.2 MB are sent; the heaviest element has 1.05 of the mean instead of 1.61`."""
    count = len(proposal.moves)
    now, then = proposal.before / proposal.mean, proposal.after / proposal.mean
    if not count:
        return f"{proposal.strategy}: no rank moves; the heaviest element has {now:.2f} of the mean"
    return (
        f"{proposal.strategy}: {count} rank{'s move' if count > 1 else ' moves'}, {byte_count(proposal.size)} are "
        f"sent; the heaviest element has {then:.2f} of the mean instead of {now:.2f}"
    )


def moves_text(proposal: Proposal) -> str:
    """Which rank goes where."""
    moves = proposal.moves
    shown = ", ".join(
        f"{move.rank}: {place_text(move.origin)} to {place_text(move.target)}" for move in moves[:MOST_MOVES]
    )
    return shown + (f", and {len(moves) - MOST_MOVES} more" if len(moves) > MOST_MOVES else "")
