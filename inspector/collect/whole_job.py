"""`--job`: one report of all processes of a job.

Takes the members that `pieglobalsfind.jobs.members` has found; reads each by itself and merges what it gives. A rank
that several processes know is described by the one where it is: of two records, the later is right. What can't
be read is named, with the ranks that are missing for it; the rest is still reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional, TypedDict, Union

from pieglobalsfind.decoders.communicators import Communicators, communicators, of_world
from pieglobalsfind.dwarf.types import Variables
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.jobs.members import JobMember, Members, strongest_records
from pieglobalsfind.model import MIGRATED_OUT, Absent, Rank, RankTable
from pieglobalsfind.ranks import rankset

from ..analysis import stack_groups
from ..analysis.confirmed_waits import unconfirmed, waits_of
from ..analysis.crash.crash import Crash, crash_of
from ..analysis.crash.unfinished_handler import holders
from ..analysis.global_values import (
    ADDRESSED,
    DIFFERS,
    EQUAL,
    INITIAL,
    SHARED,
    UNKNOWN,
    Globals,
    GlobalValues,
    Group,
)
from ..analysis.judge_job import places_of
from ..analysis.migration_cost import WhatIf, what_if
from ..analysis.report import Report, make_report
from ..analysis.stack_groups import GroupMessage
from ..analysis.wait_graph import Waits
from ..job import read_stacks
from ..job.job import Job, Subject, ranks_at_home, subject_of, with_waiting_calls
from ..job.read_processes import homes_of, read_together
from ..job.reading import Way
from ..load.counted import load_of
from ..pointers.findings import Alarm, Audit
from .host_findings import HostFindings, lacks, mixed, together
from .host_reading import Reading

PRECEDENCE = (
    SHARED,
    DIFFERS,
    ADDRESSED,
    EQUAL,
    INITIAL,
    UNKNOWN,
)  # which of two processes' verdicts holds for both


@dataclass(frozen=True)
class Findings(HostFindings):
    """Of a report, or of some of its parts; `report` is None if no process could be read.

    `calls` and `sizes` (what other ways to migrate would send) are there only if they were asked for.
    """

    report: Optional[Report] = None
    calls: GroupMessage = field(default_factory=GroupMessage)
    sizes: tuple[WhatIf, ...] = ()

    @classmethod
    def merge(cls, several: Sequence[Findings]) -> Findings:
        """One of all; each rank is described by the process where it is."""
        return merge(several)

    @property
    def is_read(self) -> bool:
        """Whether any process could be read."""
        return self.report is not None

    def with_how(self, how: str) -> Findings:
        """The same with another sentence about how it was read."""
        assert self.report is not None
        return replace(self, report=replace(self.report, subject=replace(self.report.subject, how=how)))


def reading_of_report(job: str, pictures: bool) -> Reading[Findings]:
    """What a collector of a report reads; `pictures`: with what the report's pictures need."""
    return Reading(job, Findings, lambda members, handed: read_members(members, Way(), pictures, handed), True)


def reading_of_waits(job: str) -> Reading[Findings]:
    """What a collector of waits reads."""
    return Reading(job, Findings, lambda members, _: read_waits(members, Way()))


def read_members(
    members: Members, way: Way, pictures: bool = False, handed: Optional[Mapping[bytes, Variables]] = None
) -> Findings:
    """All members, merged; `pictures`: with what the report's pictures need.

    `handed`: debug information by build-id that is there already.
    """
    return _merged(members, read_together(members, way, lambda job, _: process_of(job, pictures), True, True, handed))


def read_waits(members: Members, way: Way) -> Findings:
    """All members' waits, merged, and nothing else of a report."""

    def of_process(opened: Job, _: JobMember) -> ReadProcess:
        raw = with_waiting_calls(opened)
        groups = communicators(raw.target, raw.table)
        job = replace(raw, table=of_world(raw.table, groups))
        return ReadProcess(raw, Findings(report=replace(bare_report(job), communicators=groups)))

    return _merged(members, read_together(members, way, of_process, with_requests=True))


def bare_report(job: Job) -> Report:
    """A report that has its subject alone."""
    return Report(subject_of(job), Globals((), ()), Audit((), {}, (), 0), ())


def _merged(members: Members, read: Sequence[tuple[JobMember, Union[ReadProcess, RanklensError]]]) -> Findings:
    findings = merge([*(findings_of(*pair) for pair in read), Findings(problems=members.doubtful)])
    return with_waits_of(findings, [result for _, result in read if not isinstance(result, RanklensError)])


def findings_of(member: JobMember, result: Union[ReadProcess, RanklensError]) -> Findings:
    """Return what one process of a job tells, or why it tells nothing."""
    if isinstance(result, RanklensError):
        return Findings(frozenset((member.index,)), (member.saying(result.sentence),))
    return replace(result.findings, processes=frozenset((member.index,)))


def with_waits_of(findings: Findings, processes: Sequence[ReadProcess]) -> Findings:
    """The waits of all processes together, which were read at one moment."""
    if findings.report is None or not processes:
        return findings
    homes = homes_of([process.job for process in processes])
    table = replace(next(iter(homes.values())).table, ranks=ranks_at_home(homes))
    waits = waits_of(table, findings.report.communicators, homes)
    load = load_of(process.job for process in processes)
    places = places_of(table, waits, homes)
    report = replace(findings.report, waits=waits, places=places, load=None if isinstance(load, Absent) else load)
    return replace(findings, report=report)


@dataclass(frozen=True)
class ReadProcess:
    """One process: the job as it was read, with the calls that its ranks wait in, and what it tells."""

    job: Job
    findings: Findings


def process_of(opened: Job, pictures: bool) -> ReadProcess:
    """What one process tells, without its waits: other processes may have a part in them."""
    raw = with_waiting_calls(opened)
    groups = communicators(raw.target, raw.table)
    job = replace(raw, table=of_world(raw.table, groups))
    crash = crash_of(job)
    report = replace(
        make_report(job), communicators=groups, crashes=() if crash is None else (crash,), held=holders(job)
    )
    if not pictures:
        return ReadProcess(raw, Findings(report=report))
    return ReadProcess(raw, Findings(report=report, calls=stacks_of(job), sizes=what_if(job.bulk, report.payload)))


def read_one(job: Job, pictures: bool) -> tuple[Findings, Report]:
    """The findings of one process, and the report in them."""
    process = process_of(job, pictures)
    findings = with_waits_of(process.findings, [process])
    assert findings.report is not None
    return findings, findings.report


def stacks_of(job: Job) -> GroupMessage:
    """Return a process's stacks in groups; none if they can't be read."""
    try:
        return stack_groups.grouped(read_stacks.read(job, rankset.parse("all"), False).calls).message()
    except RanklensError:
        return GroupMessage()  # the report itself says what could not be had


def merge(several: Sequence[Findings]) -> Findings:
    """One of all; the order does not matter, and merged ones can be merged again."""
    reports = [findings.report for findings in several if findings.report is not None]
    processes, problems = together(several)
    if not reports:
        return Findings(processes, problems)
    report, contradictions = merge_reports(reports)
    homes = {rank.rank for rank in report.subject.present}
    sizes = {size.rank: size for findings in several for size in findings.sizes if size.rank in homes}
    ordered = tuple(sizes[rank] for rank in sorted(sizes))
    return Findings(processes, problems + contradictions, report, _merge_calls(several, reports), ordered)


def _merge_calls(several: Sequence[Findings], reports: Sequence[Report]) -> GroupMessage:
    """Each rank's stack once, by the process where it is."""
    walked = [findings for findings in several if findings.calls.counts]
    if len(walked) == 1:
        return walked[0].calls
    homes = strongest_records((report, report.subject.table.ranks) for report in reports) if walked else {}
    return stack_groups.merge(
        findings.calls.without(_strangers(findings.report, homes)) for findings in walked if findings.report is not None
    ).message()


def _strangers(report: Report, homes: Mapping[int, tuple[Rank, Report]]) -> frozenset[int]:
    """The ranks in a report that another one tells of, though they are in both."""
    return frozenset(rank.rank for rank in report.subject.present if homes[rank.rank][1] is not report)


def finished(findings: Findings, name: str, count: int) -> Report:
    """The report of a job of `count` processes, problems among its warnings; `RanklensError` if there is none."""
    if findings.report is None:
        raise RanklensError(f"no process of {name} can be read", "; ".join(findings.problems))
    table = findings.report.subject.table
    gone: dict[int, list[int]] = {}
    for rank in table.ranks:
        if rank.state == MIGRATED_OUT:
            gone.setdefault(rank.process, []).append(rank.rank)
    sentences = lacks(findings, count, table.rank_count, (rank.rank for rank in table.ranks), gone)
    table = replace(table, warnings=tuple(dict.fromkeys((*table.warnings, *sentences))))
    return replace(findings.report, subject=replace(findings.report.subject, table=table, description=name))


# ---- merging ----


def merge_reports(reports: Sequence[Report]) -> tuple[Report, tuple[str, ...]]:
    """One report, and a sentence for each thing that processes of one job must not differ in."""
    first = min(reports, key=lambda report: report.subject.table.process_index)
    homes = strongest_records((report, report.subject.table.ranks) for report in reports)
    own = own_of(reports, homes)
    table = replace(
        first.subject.table,
        ranks=tuple(homes[number][0] for number in sorted(homes)),
        warnings=tuple(dict.fromkeys(text for report in reports for text in report.subject.table.warnings)),
    )
    payload = {size.rank: size for report, ranks in zip(reports, own) for size in report.payload if size.rank in ranks}
    merged = Report(
        Subject(first.subject.description, table, max(report.subject.taken for report in reports), first.subject.how),
        merge_globals([report.globals for report in reports], own),
        _merge_audits([report.pointers for report in reports], own),
        tuple(payload[rank] for rank in sorted(payload)),
        tuple(dict.fromkeys(diagnosis for report in reports for diagnosis in report.diagnoses)),
        **merge_waits(reports, table),
    )
    return merged, tuple(mixed([report.subject.table for report in reports]))


class WaitParts(TypedDict):
    """The parts of a report that its verdict is made from."""

    waits: Optional[Waits]
    communicators: Communicators
    crashes: tuple[Crash, ...]
    places: Mapping[int, str]
    held: tuple[str, ...]


def merge_waits(reports: Sequence[Report], table: RankTable) -> WaitParts:
    """Of several processes that were not read together, only what was sure in one is, until `with_waits_of` says so."""
    groups = {number: ranks for report in reports for number, ranks in report.communicators.items()}
    parts = [report.waits for report in reports if report.waits is not None]
    waits = reports[0].waits if len(reports) == 1 else unconfirmed(table, groups, parts)
    return {
        "waits": waits,
        "communicators": groups,
        "crashes": tuple(crash for report in reports for crash in report.crashes),
        "places": {rank: place for report in reports for rank, place in report.places.items()},
        "held": tuple(dict.fromkeys(holder for report in reports for holder in report.held)),
    }


def own_of(reports: Sequence[Report], homes: Mapping[int, tuple[Rank, Report]]) -> list[frozenset[int]]:
    """The ranks that each report describes."""
    own: dict[int, list[int]] = {id(report): [] for report in reports}
    for number, (_, home) in homes.items():
        own[id(home)].append(number)
    return [frozenset(own[id(report)]) for report in reports]


def merge_globals(several: Sequence[Globals], own: Sequence[frozenset[int]]) -> Globals:
    """Merge the globals of processes; each rank's value comes from its own process."""
    variables: dict[tuple[str, str, int, str], list[GlobalValues]] = {}
    for globals_read, ranks in zip(several, own):
        for global_values in globals_read.values:
            key = global_values.object, global_values.file, global_values.line, global_values.name
            variables.setdefault(key, []).append(
                replace(global_values, groups=tuple(kept(global_values.groups, ranks)))
            )
    absent = dict.fromkeys(reason for globals_read in several for reason in globals_read.absent)
    apart = max((globals_read.apart for globals_read in several), default=0)
    return Globals(tuple(_merge_variable(variable) for variable in variables.values()), tuple(absent), apart)


def kept(groups: Iterable[Group], ranks: frozenset[int]) -> Iterable[Group]:
    """Yield groups with the given ranks alone."""
    for group in groups:
        left = tuple(rank for rank in group.ranks if rank in ranks)
        if left:
            yield replace(group, ranks=left)


def _merge_variable(several: Sequence[GlobalValues]) -> GlobalValues:
    values: dict[tuple[str, bytes], list[int]] = {}
    for variable in several:
        for group in variable.groups:
            values.setdefault((group.value, group.digest), []).extend(group.ranks)
    groups = [Group(tuple(sorted(ranks)), value, digest) for (value, digest), ranks in values.items()]
    groups.sort(key=lambda group: (-len(group.ranks), group.ranks))
    verdict = next(
        (verdict_name for verdict_name in PRECEDENCE if any(single.verdict == verdict_name for single in several)),
        UNKNOWN,
    )
    if verdict in (ADDRESSED, EQUAL) and len(groups) > 1:
        verdict = DIFFERS
    needless = min(variable.needless for variable in several) if len(groups) == 1 else 0
    uncompared = (
        next((variable.uncompared for variable in several if variable.uncompared), "") if len(groups) == 1 else ""
    )
    return replace(several[0], groups=tuple(groups), verdict=verdict, needless=needless, uncompared=uncompared)


def _merge_audits(several: Sequence[Audit], own: Sequence[frozenset[int]]) -> Audit:
    counts: dict[tuple[str, str], int] = {}
    for audit in several:
        for key, words in audit.counts.items():
            counts[key] = counts.get(key, 0) + words
    findings = [finding for audit, ranks in zip(several, own) for finding in audit.findings if finding.rank in ranks]
    alarms: dict[str, Alarm] = {}
    for alarm in (alarm for audit in several for alarm in audit.alarms):
        earlier = alarms.get(alarm.object)
        alarms[alarm.object] = alarm if earlier is None else both(earlier, alarm)
    return Audit(
        tuple(sorted(findings, key=lambda finding: (finding.rank, finding.address))),
        counts,
        tuple(alarms.values()),
        sum(audit.changed for audit in several),
        tuple(dict.fromkeys(reason for audit in several for reason in audit.absent)),
        tuple(
            sorted(
                rank_and_reason
                for audit, ranks in zip(several, own)
                for rank_and_reason in audit.unread
                if rank_and_reason[0] in ranks
            )
        ),
    )


def both(first: Alarm, second: Alarm) -> Alarm:
    """Return an alarm for the ranks of two."""
    ranks = tuple(sorted({*first.ranks, *second.ranks}))
    return replace(first, ranks=ranks, of_ranks=first.of_ranks + second.of_ranks)
