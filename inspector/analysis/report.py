"""Everything about a job in one value, and its form in JSON.

Takes a `Job`; each part is read by its own module. It formats nothing for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union

from pieglobalsfind.decoders.communicators import Communicators
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks.rankset import compact

from ..job.job import Job, Subject, subject_of
from ..terminal.text import harmless
from .payload import CATEGORIES, Payload, read_payload
from .rank_memory import Holding, holdings

if TYPE_CHECKING:  # what one part alone needs is loaded when it is read
    from pieglobalsfind.values.rank_statistics import Statistics

    from ..load.loads import Loads
    from ..pointers.findings import Alarm, Audit, PointerFinding
    from .crash.crash import Crash
    from .global_values import Globals, GlobalValues
    from .method_diagnoses import Diagnosis
    from .migration_cost import Network, WhatIf
    from .verdict import Verdict
    from .wait_graph import Waits


@dataclass(frozen=True)
class Report:
    """What `inspector report` knows of a job.

    `waits` is None where nothing is known of them, `communicators` are those in which ranks wait. `places`: the
    innermost calls of the ranks that others wait for, as far as they could be read. `load`: None where nothing
    counts it. `held`: debuggers that hold its processes: they alone know of signals that they hold back.
    """

    subject: Subject
    globals: Globals
    pointers: Audit
    payload: tuple[Payload, ...]
    diagnoses: tuple[Diagnosis, ...] = ()
    waits: Optional[Waits] = None
    communicators: Communicators = field(default_factory=dict)
    crashes: tuple[Crash, ...] = ()
    places: Mapping[int, str] = field(default_factory=dict)
    load: Optional[Loads] = None
    held: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be had, each said once."""
        absent = (*self.globals.absent, *self.pointers.absent)
        hinted = (f"{lack.reason}: {lack.hint}" if lack.hint else lack.reason for lack in absent)
        return tuple(dict.fromkeys(harmless(warning) for warning in (*self.subject.table.warnings, *hinted)))


def make_report(job: Job) -> Report:
    """Read all parts, one after the other."""
    from ..pointers.check import audit_pointers
    from .read_globals import read_globals

    bulk = job.bulk
    return Report(subject_of(bulk), read_globals(job), audit_pointers(bulk), read_payload(bulk), diagnose(job))


def diagnose(job: Job) -> tuple[Diagnosis, ...]:
    """What the job's method does wrongly with its program, by the program's file."""
    from .method_diagnoses import METHODS, applying
    from .program_facts import read_facts
    from .runtime_diagnoses import judge_for, of_job

    program = next((elf_object for elf_object in job.table.objects if elf_object.is_program), None)
    path = job.file(program) if program is not None else Absent("the job names no program")
    if program is None or isinstance(path, Absent) or job.table.method not in METHODS:
        return ()
    try:
        facts = read_facts(path, job.declared(program))
        return applying(judge_for(facts, job.table.method, of_job(job.table)).diagnoses, job.table)
    except ObjectFileError:
        return ()


def as_json(report: Report, verdict: Verdict) -> dict[str, Any]:
    """The report in the form of `schema.SCHEMA`."""
    from .report_schema import NAME

    table = report.subject.table
    return {
        "schema": NAME,
        "target": harmless(report.subject.description),
        "job": harmless(table.job_id),
        "taken": report.subject.taken,
        "how": report.subject.how,
        "method": harmless(table.method),
        "runtime": harmless(table.runtime),
        "rewrite_mode": harmless(table.rewrite_mode),
        "rank_count": table.rank_count,
        "verdict": verdict_as_json(verdict),
        "crashes": [_crash_as_json(crash) for crash in report.crashes],
        "ranks": [rank_as_json(holding) for holding in holdings(table.ranks, report.payload)],
        "globals": [global_as_json(value) for value in report.globals.values],
        "needless": report.globals.needless,
        "apart": report.globals.apart,
        "diagnoses": [diagnosis_as_json(diagnosis) for diagnosis in report.diagnoses],
        "pointers": pointers_as_json(report.pointers),
        "payload": [payload_as_json(payload) for payload in report.payload],
        "warnings": list(report.warnings),
    }


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as the report's JSON has it."""
    return {
        "kind": verdict.kind,
        "sentence": harmless(verdict.sentence),
        "ranks": compact(verdict.ranks),
        "command": harmless(verdict.command),
        "findings": [
            {
                "sentence": harmless(finding.sentence),
                "ranks": compact(finding.ranks),
                "command": harmless(finding.command),
            }
            for finding in verdict.findings
        ],
        "diagnoses": [diagnosis.id for diagnosis in verdict.diagnoses],
    }


def _crash_as_json(crash: Crash) -> dict[str, Any]:
    return {
        "signal": crash.signal,
        "rank": crash.rank,
        "address": None if crash.address is None else hex(crash.address),
        "owner": harmless(crash.owner),
        "place": harmless(crash.place),
        "message": harmless(crash.message),
        "handler": harmless(crash.handler),
        "diagnosis": None if crash.diagnosis is None else diagnosis_as_json(crash.diagnosis),
    }


def rank_as_json(holding: Holding) -> dict[str, Any]:
    """Return a rank as the report's JSON has it."""
    rank, waiting = holding.rank, holding.rank.waiting
    return {
        "rank": rank.rank,
        "state": rank.state,
        "is_actor": rank.is_actor,
        "tier": rank.evidence.tier,
        "source": harmless(rank.evidence.source),
        "process": rank.process,
        "moves": rank.moves,
        "exit_status": rank.exit_status,
        "processing_element": rank.processing_element,
        "kernel_thread": rank.kernel_thread,
        "waiting": None
        if waiting is None
        else {
            "call": harmless(waiting.call),
            "peer": waiting.peer,
            "tag": waiting.tag,
            "communicator": waiting.communicator,
            "sent": waiting.is_sent,
            "others": [{"peer": other.peer, "tag": other.tag, "sent": other.is_sent} for other in waiting.others],
            "needs_one": waiting.needs_one,
        },
        "switches": None if isinstance(holding.switches, Absent) else holding.switches,
        "memory": None if isinstance(holding.memory, Absent) else holding.memory,
        "unknown": [harmless(reason) for reason in holding.unknown],
    }


def global_as_json(global_values: GlobalValues) -> dict[str, Any]:
    """Return a global as the report's JSON has it."""
    return {
        "name": global_values.name,
        "object": global_values.object,
        "file": global_values.file,
        "line": global_values.line,
        "type": global_values.type,
        "size": global_values.size,
        "storage": global_values.storage,
        "differs": global_values.differs,
        "verdict": global_values.verdict,
        "needless": global_values.needless,
        "uncompared": global_values.uncompared,
        "statistics": statistics_as_json(global_values.statistics),
        "groups": [{"ranks": compact(group.ranks), "value": group.value} for group in global_values.groups],
    }


def statistics_as_json(statistics: Optional[Statistics]) -> Optional[dict[str, Any]]:
    """None where there are none."""
    if statistics is None:
        return None
    return {
        "count": statistics.count,
        "minimum": statistics.minimum,
        "maximum": statistics.maximum,
        "mean": statistics.mean,
        "deviation": statistics.deviation,
        **{name: compact(getattr(statistics, name)) for name in ("lowest", "highest", "beyond", "not_finite")},
    }


def pointers_as_json(audit: Audit) -> dict[str, Any]:
    """Return the pointer check as the report's JSON has it."""
    return {
        "alarms": [_alarm_as_json(alarm) for alarm in audit.alarms],
        "counts": [
            {"object": harmless(name), "verdict": verdict, "words": words}
            for (name, verdict), words in sorted(audit.counts.items())
        ],
        "changed": audit.changed,
        "findings": [finding_as_json(finding) for finding in audit.findings],
        "unread": [
            {"ranks": compact(ranks), "reason": harmless(reason)} for reason, ranks in audit.unread_by_reason.items()
        ],
    }


def _alarm_as_json(alarm: Alarm) -> dict[str, Any]:
    return {
        "object": harmless(alarm.object),
        "ranks": compact(alarm.ranks),
        "of_ranks": alarm.of_ranks,
        "sentence": harmless(alarm.sentence),
    }


def diagnosis_as_json(diagnosis: Diagnosis) -> dict[str, str]:
    """Return a diagnosis as the report's JSON has it."""
    return {
        "id": diagnosis.id,
        "severity": diagnosis.severity,
        "cause": harmless(diagnosis.cause),
        "evidence": harmless(diagnosis.evidence),
        "cure": diagnosis.cure,
    }


def finding_as_json(pointer_finding: PointerFinding) -> dict[str, Any]:
    """Return a pointer finding as the report's JSON has it."""
    return {
        "rank": pointer_finding.rank,
        "object": harmless(pointer_finding.object),
        "offset": hex(pointer_finding.offset),
        "address": hex(pointer_finding.address),
        "symbol": pointer_finding.ground.symbol,
        "type": pointer_finding.ground.type,
        "verdict": pointer_finding.verdict,
        "evidence": pointer_finding.ground.source,
        "old": hex(pointer_finding.old),
        "new": hex(pointer_finding.new),
        "right": _hex_or_none(pointer_finding.right),
        "demangled": None if pointer_finding.demangled is None else hex(pointer_finding.demangled),
        "rewritten": pointer_finding.rewritten,
        "past_end": pointer_finding.past_end,
    }


def _hex_or_none(value: Union[int, Absent]) -> Union[str, None]:
    return None if isinstance(value, Absent) else hex(value)


def payload_as_json(payload: Payload) -> dict[str, Any]:
    """Return a rank's payload as the report's JSON has it."""
    categories = {name: getattr(payload, name) for name in CATEGORIES}
    return {
        "rank": payload.rank,
        "total": payload.total,
        **categories,
        "notes": [harmless(note) for note in payload.notes],
    }


def what_if_as_json(what_if: WhatIf, link: Network) -> dict[str, Any]:
    """Bytes and, at the link's rates, seconds of each way to send the rank."""
    from .migration_cost import WAYS

    ways = {name: getattr(what_if, name) for name in WAYS}
    return {
        "rank": what_if.rank,
        "bytes": ways,
        "seconds": {name: link.seconds(size) for name, size in ways.items()},
        "pages": {
            "zero": what_if.zero,
            "original": what_if.original,
            "common": what_if.common,
            "unread": what_if.unread,
        },
    }
