"""Choose a job's verdict: crash, deadlock, standstill, imbalance, or healthy.

Takes a report; gives the worst that its parts show, the ranks that stand out, findings with the fewest ranks first, and
the command to type next. It holds for the moment of the report, and reads nothing but the stacks of few ranks.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import BLOCKED, EXITED, MIGRATED_OUT, UNKNOWN_STATE, RankTable
from pieglobalsfind.ranks.rankset import compact
from pieglobalsfind.session.runtime_frames import location

from ..job.job import Job
from ..job.read_stacks import label
from ..terminal.text import harmless, of_ranks, shortened
from .global_values import by_rarity, outliers
from .verdict import CRASH, DEADLOCK, HEALTHY, IMBALANCE, POSSIBLE_DEADLOCK, STANDSTILL, RankFinding, Verdict
from .wait_graph import Collective, Waits

if TYPE_CHECKING:
    from .global_values import GlobalValues
    from .report import Report

MOST_FINDINGS = 5
LONGEST_VALUE = 60
MOST_PLACES = 8  # ranks whose stacks are read for the verdict
FEW = 4  # ranks that run are few if they are at most a quarter of those that wait for them
NAMED = 64  # characters of a set of ranks


@dataclass(frozen=True)
class Judged:
    """The worst of a report, before findings are added."""

    kind: str
    sentence: str
    ranks: tuple[int, ...]
    command: str


def verdict_of(report: Report, named: str) -> Verdict:
    """The verdict on a report. `named`: the target as it is typed in a command, such as `4711` or `--job 4711`."""
    table, waits = report.subject.table, report.waits
    judged = next(verdicts(report, table, waits, named))
    crash = report.crashes[0] if report.crashes else None
    of_crash = (crash.diagnosis,) if crash is not None and crash.diagnosis is not None else ()
    diagnoses = (
        *of_crash,
        *(diagnosis for diagnosis in report.diagnoses if diagnosis.id not in {each.id for each in of_crash}),
    )
    findings = tuple(findings_of(report, named))[:MOST_FINDINGS]
    return Verdict(judged.kind, judged.sentence, judged.ranks, judged.command, findings, diagnoses)


def verdicts(report: Report, table: RankTable, waits: Optional[Waits], named: str) -> Iterator[Judged]:
    """All that fit, the worst first; the last always does."""
    for crash in report.crashes:
        ranks = () if crash.rank is None else (crash.rank,)
        yield Judged(CRASH, crash.sentence, ranks, f"inspector stacks {named}{rank_option(ranks)} --flat")
    if waits is not None:
        yield from deadlocks(waits, named)
        if waits.standstill:
            sentence = f"{text_of(waits.standstill)}, all that have not exited, {verb(waits.standstill, 'wait')}"
            hint = "; only a message that is still on its way could let one go on"
            yield Judged(STANDSTILL, sentence + hint, waits.standstill, f"inspector waits {named}")
        yield from imbalance(table, waits, report.places, named)
    yield healthy(table, waits, named, report.held)


def deadlocks(waits: Waits, named: str) -> Iterator[Judged]:
    """Yield the verdicts on cycles and on ranks that have left a collective."""
    command = f"inspector waits {named}"
    for cycle in waits.cycles:
        more = f" (and {len(waits.cycles) - 1} more cycles)" if len(waits.cycles) > 1 else ""
        yield Judged(DEADLOCK, f"{_chain_text(cycle.ranks)}{more}", cycle.ranks, command)
    for collective in waits.collectives:
        gone = tuple(rank for rank in collective.needed if rank in collective.exited)
        if gone and collective.of_all and collective.members is not None:
            missing = f"{text_of(gone)}, which {verb(gone, 'have')} exited"
            yield Judged(DEADLOCK, f"{_inside_text(collective)} for {missing}", collective.inside, command)
    for cycle, reason in waits.unsure:
        sentence = f"{_chain_text(cycle.ranks)}, unless a message is on its way ({reason})"
        yield Judged(POSSIBLE_DEADLOCK, sentence, cycle.ranks, command)


def _chain_text(ranks: tuple[int, ...]) -> str:
    chain = " -> ".join(map(str, (*ranks[:NAMED], *(("...",) if len(ranks) > NAMED else ()), ranks[0])))
    if len(ranks) == 1:
        return f"rank {ranks[0]} waits for itself, {chain}"
    return f"{text_of(ranks)} wait for one another, {chain}"


def imbalance(table: RankTable, waits: Waits, places: Mapping[int, str], named: str) -> Iterator[Judged]:
    """Most ranks wait for few that don't."""
    waiting = waiting_for(table, waits)
    roots = tuple(sorted({root for rank_roots in waiting.values() for root in rank_roots}))
    living = sum(rank.state not in (EXITED, MIGRATED_OUT) for rank in table.ranks)
    if not roots or 2 * len(waiting) <= living or FEW * len(roots) > len(waiting):
        return
    at = [f"rank {rank} is in {places[rank]}" for rank in roots if rank in places]
    where = f" ({'; '.join(at)})" if at else ""
    sentence = f"{len(waiting)} of {living} ranks wait for {text_of(roots)}{where}"
    yield Judged(IMBALANCE, sentence, roots, f"inspector stacks {named}{rank_option(roots)}")


def places_of(table: RankTable, waits: Waits, homes: Mapping[int, Job]) -> dict[int, str]:
    """The innermost calls of the program's own of the few ranks that others wait for, as far as they can be read."""
    roots = sorted({root for rank_roots in waiting_for(table, waits).values() for root in rank_roots})
    ranks = {rank.rank: rank for rank in table.ranks}
    names: dict[int, str] = {}
    for number in roots if len(roots) <= MOST_PLACES else ():
        job = homes.get(number)
        if job is None:
            continue
        with suppress(RanklensError):
            call = location(job.table, job.translator, job.walker, ranks[number])
            names.update({number: label(call)} if call is not None else {})
    return names


def waiting_for(table: RankTable, waits: Waits) -> dict[int, frozenset[int]]:
    """By rank that waits: the ranks at the end of its chain, which don't wait themselves."""
    blocked = {rank.rank for rank in table.ranks if rank.state == BLOCKED}
    direct: dict[int, tuple[int, ...]] = {rank: (peer,) for rank, peer in waits.peers.items() if rank in blocked}
    for call in waits.collectives:
        if call.of_all and call.needed:
            direct.update(dict.fromkeys((rank for rank in call.inside if rank in blocked), call.needed))
    ends_of: dict[int, frozenset[int]] = {}
    for rank in direct:
        ends, met, left = set[int](), {rank}, list(direct[rank])
        while left:
            node = left.pop()
            if node in met:
                continue
            met.add(node)
            if node in direct:
                if node in ends_of:
                    ends |= ends_of[node]
                else:
                    left += direct[node]
            elif node not in blocked:
                ends.add(node)
        ends_of[rank] = frozenset(ends)
    return {rank: ends for rank, ends in ends_of.items() if ends}


def healthy(table: RankTable, waits: Optional[Waits], named: str, held: tuple[str, ...] = ()) -> Judged:
    """What was not known: a verdict on half of the facts is none."""
    counts: dict[str, int] = {}
    for rank in table.ranks:
        counts[rank.state] = counts.get(rank.state, 0) + 1
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    unknown = [rank.rank for rank in table.ranks if rank.state == UNKNOWN_STATE]
    note = "; no crash and no deadlock at this moment"
    if waits is None or unknown:
        note = "; which ranks wait for which is not known"
    elif waits.unknown or waits.untold:
        number = len(waits.unknown) + len(waits.untold)
        note = f"; no crash and no deadlock at this moment, but {number} waiting ranks' peers are not known"
    if held:
        hidden = "whether a signal stopped it, that debugger alone knows"
        note = note.replace("no crash and no", "no", 1) + f"; {', '.join(held)} holds the process, {hidden}"
    return Judged(HEALTHY, f"{states or 'no ranks'}{note}", (), f"inspector globals {named} --differ")


def findings_of(report: Report, named: str) -> Iterator[RankFinding]:
    """Fewest ranks first: exit statuses, then variables."""
    failed = tuple(rank.rank for rank in report.subject.table.ranks if rank.exit_status)
    if failed:
        yield RankFinding(f"{text_of(failed)} exited with an error", failed, f"inspector ranks {named}")
    for global_values in by_rarity(each for each in report.globals.values if each.differs):
        ranks = outliers(global_values)
        if ranks:
            yield RankFinding(
                difference(global_values, ranks), ranks, f"inspector globals {named} {shlex.quote(global_values.name)}"
            )


def difference(global_values: GlobalValues, ranks: tuple[int, ...]) -> str:
    """`residual: rank 37 alone has nan, the other 63 have 0.001`."""
    usual = max(global_values.groups, key=lambda group: len(group.ranks))
    values = [group.value for group in global_values.groups if group is not usual and group.is_known]
    others = f"{shortened(values[0], LONGEST_VALUE)}" if len(values) == 1 else f"{len(values)} other values"
    alone = " alone" if len(ranks) == 1 else ""
    has = "has" if len(ranks) == 1 else "have"
    rest = f"the other {len(usual.ranks)} have {shortened(usual.value, LONGEST_VALUE)}"
    return harmless(f"{global_values.name}: {text_of(ranks)}{alone} {has} {others}, {rest}")


def rank_option(ranks: tuple[int, ...]) -> str:
    """Return the option that names some ranks, "" if they are too many."""
    return f" --rank {compact(ranks)}" if ranks and len(compact(ranks)) <= NAMED else ""


def text_of(ranks: tuple[int, ...]) -> str:
    """Return ranks as text, or their number if they are too many."""
    text = compact(ranks)
    return of_ranks(text) if len(text) <= NAMED else f"{len(ranks)} ranks"


def verb(ranks: tuple[int, ...], plural: str) -> str:
    """Return a verb for one rank or several."""
    return plural if len(ranks) != 1 else {"have": "has", "wait": "waits"}[plural]


def _inside_text(collective: Collective) -> str:
    return f"{text_of(collective.inside)} {verb(collective.inside, 'wait')} in {collective.call}"
