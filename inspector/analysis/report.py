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
    from pieglobalsfind.values.statistics import Statistics

    from ..pointers.findings import Alarm, Audit, Finding
    from .crash import Crash
    from .diagnoses import Diagnosis
    from .globals import Globals, GlobalValues
    from .migration_cost import Link, WhatIf
    from .verdict import Verdict
    from .wait_graph import Waits


@dataclass(frozen=True)
class Report:
    """What `inspector report` knows of a job.

    `waits` is None where nothing is known of them, `communicators` are those in which ranks wait. `places`: the
    innermost calls of the ranks that others wait for, as far as they could be read.
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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be had, each said once."""
        absent = (*self.globals.absent, *self.pointers.absent)
        hinted = (f"{one.reason}: {one.hint}" if one.hint else one.reason for one in absent)
        return tuple(dict.fromkeys(harmless(one) for one in (*self.subject.table.warnings, *hinted)))


def make_report(job: Job) -> Report:
    """Read all parts, one after the other."""
    from ..pointers.check import audit_pointers
    from .globals import read_globals

    bulk = job.bulk
    return Report(subject_of(bulk), read_globals(job), audit_pointers(bulk), read_payload(bulk), diagnose(job))


def diagnose(job: Job) -> tuple[Diagnosis, ...]:
    """What the job's method does wrongly with its program, by the program's file."""
    from .diagnoses import METHODS, applying
    from .program import read_facts
    from .runtimes import judge_for, of_job

    program = next((one for one in job.table.objects if one.is_program), None)
    path = job.file(program) if program is not None else Absent("the job names no program")
    if program is None or isinstance(path, Absent) or job.table.method not in METHODS:
        return ()
    try:
        facts = read_facts(path, job.declared(program))
        found = judge_for(facts, job.table.method, of_job(job.table)).diagnoses
    except ObjectFileError:
        return ()
    return applying(found, job.table)


def as_json(report: Report, verdict: Verdict) -> dict[str, Any]:
    """The report in the form of `schema.SCHEMA`."""
    from .schema import NAME

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
        "crashes": [crash_as_json(one) for one in report.crashes],
        "ranks": [rank_as_json(one) for one in holdings(table.ranks, report.payload)],
        "globals": [global_as_json(one) for one in report.globals.values],
        "needless": report.globals.needless,
        "apart": report.globals.apart,
        "diagnoses": [diagnosis_as_json(one) for one in report.diagnoses],
        "pointers": pointers_as_json(report.pointers),
        "payload": [payload_as_json(one) for one in report.payload],
        "warnings": list(report.warnings),
    }


def verdict_as_json(found: Verdict) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "sentence": harmless(found.sentence),
        "ranks": compact(found.ranks),
        "command": harmless(found.command),
        "findings": [
            {"sentence": harmless(one.sentence), "ranks": compact(one.ranks), "command": harmless(one.command)}
            for one in found.findings
        ],
        "diagnoses": [one.id for one in found.diagnoses],
    }


def crash_as_json(found: Crash) -> dict[str, Any]:
    return {
        "signal": found.signal,
        "rank": found.rank,
        "address": None if found.address is None else hex(found.address),
        "owner": harmless(found.owner),
        "place": harmless(found.place),
        "message": harmless(found.message),
        "diagnosis": None if found.diagnosis is None else diagnosis_as_json(found.diagnosis),
    }


def rank_as_json(found: Holding) -> dict[str, Any]:
    rank, waiting = found.rank, found.rank.waiting
    return {
        "rank": rank.rank,
        "state": rank.state,
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
        },
        "switches": None if isinstance(found.switches, Absent) else found.switches,
        "memory": None if isinstance(found.memory, Absent) else found.memory,
        "unknown": [harmless(one) for one in found.unknown],
    }


def global_as_json(found: GlobalValues) -> dict[str, Any]:
    return {
        "name": found.name,
        "object": found.object,
        "file": found.file,
        "line": found.line,
        "type": found.type,
        "size": found.size,
        "storage": found.storage,
        "differs": found.differs,
        "verdict": found.verdict,
        "needless": found.needless,
        "uncompared": found.uncompared,
        "statistics": statistics_as_json(found.statistics),
        "groups": [{"ranks": compact(one.ranks), "value": one.value} for one in found.groups],
    }


def statistics_as_json(found: Optional[Statistics]) -> Optional[dict[str, Any]]:
    """None where there are none."""
    if found is None:
        return None
    return {
        "count": found.count,
        "minimum": found.minimum,
        "maximum": found.maximum,
        "mean": found.mean,
        "deviation": found.deviation,
        **{name: compact(getattr(found, name)) for name in ("lowest", "highest", "beyond", "not_finite")},
    }


def pointers_as_json(audit: Audit) -> dict[str, Any]:
    return {
        "alarms": [alarm_as_json(one) for one in audit.alarms],
        "counts": [
            {"object": harmless(name), "verdict": verdict, "words": words}
            for (name, verdict), words in sorted(audit.counts.items())
        ],
        "changed": audit.changed,
        "findings": [finding_as_json(one) for one in audit.findings],
        "unread": [
            {"ranks": compact(ranks), "reason": harmless(reason)} for reason, ranks in audit.unread_by_reason.items()
        ],
    }


def alarm_as_json(found: Alarm) -> dict[str, Any]:
    return {
        "object": harmless(found.object),
        "ranks": compact(found.ranks),
        "of_ranks": found.of_ranks,
        "sentence": harmless(found.sentence),
    }


def diagnosis_as_json(found: Diagnosis) -> dict[str, str]:
    return {
        "id": found.id,
        "severity": found.severity,
        "cause": harmless(found.cause),
        "evidence": harmless(found.evidence),
        "cure": found.cure,
    }


def finding_as_json(found: Finding) -> dict[str, Any]:
    return {
        "rank": found.rank,
        "object": harmless(found.object),
        "offset": hex(found.offset),
        "address": hex(found.address),
        "symbol": found.ground.symbol,
        "type": found.ground.type,
        "verdict": found.verdict,
        "evidence": found.ground.source,
        "old": hex(found.old),
        "new": hex(found.new),
        "right": hex_or_none(found.right),
        "demangled": None if found.demangled is None else hex(found.demangled),
        "rewritten": found.rewritten,
        "past_end": found.past_end,
    }


def hex_or_none(value: Union[int, Absent]) -> Union[str, None]:
    return None if isinstance(value, Absent) else hex(value)


def payload_as_json(found: Payload) -> dict[str, Any]:
    categories = {name: getattr(found, name) for name in CATEGORIES}
    return {"rank": found.rank, "total": found.total, **categories, "notes": [harmless(one) for one in found.notes]}


def what_if_as_json(found: WhatIf, link: Link) -> dict[str, Any]:
    """Bytes and, at the link's rates, seconds of each way to send the rank."""
    from .migration_cost import WAYS

    ways = {name: getattr(found, name) for name in WAYS}
    return {
        "rank": found.rank,
        "bytes": ways,
        "seconds": {name: link.seconds(size) for name, size in ways.items()},
        "pages": {"zero": found.zero, "original": found.original, "common": found.common, "unread": found.unread},
    }
