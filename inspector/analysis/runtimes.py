"""What each runtime makes of a program: which methods it has, which general diagnoses do not hold, and its own rules.

Takes the facts of a program's file and a runtime's name; gives diagnoses. docs/diagnoses.md has the table of all rules,
with what was run for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Optional

from pieglobalsfind.model import RankTable

from .diagnoses import LOST, METHODS, RISK, Diagnosis, Judgement, judge, named
from .program import Facts

AMPI, SMPI, PIP, EMBEDDED = RUNTIMES = ("ampi", "smpi", "pip", "embedded")
METHODS_OF = {
    AMPI: ("pie", "pip", "fs", "tls", "none"),
    SMPI: ("fs", "mmap", "none"),
    PIP: ("pipthread", "pipprocess"),
    EMBEDDED: METHODS,
}
# Which general diagnoses do not hold, by runtime
NOT_SO = {
    # -pieglobals runs programs with thread-local variables; -tlsglobals links AMPI and the program into one executable,
    # whose thread-local variables are beside the thread pointer
    AMPI: ("thread-local-in-byte-copy", "too-many-namespaces", "dynamic-thread-local-storage"),
    SMPI: (),
    PIP: ("too-many-namespaces",),
    # It scans aligned addresses and registers its copies with the unwinder
    EMBEDDED: ("unaligned-writable-segment", "exceptions-in-byte-copy"),
}
# What is only a risk in general, and certain under this runtime
CERTAIN = {AMPI: ("unaligned-writable-segment", "exceptions-in-byte-copy"), SMPI: (), PIP: (), EMBEDDED: ()}
OWN_LIBC = ("pip", "pipthread", "pipprocess")  # methods that give each rank a libc


def judge_for(facts: Facts, method: str, runtime: str) -> Judgement:
    """How the program fares under a method of a runtime; "" for any runtime."""
    judged = judge(facts, method)
    if not runtime:
        return judged
    general = (
        replace(one, severity=LOST) if one.id in CERTAIN[runtime] else one
        for one in judged.diagnoses
        if one.id not in NOT_SO[runtime]
    )
    return replace(judged, diagnoses=(*general, *own_rules(facts, method, runtime)))


def methods_of(runtime: str) -> tuple[str, ...]:
    """The methods that a runtime has, or all."""
    return METHODS_OF.get(runtime, METHODS)


def of_job(table: RankTable) -> str:
    """The runtime of a job's ranks, "" if it is none of these."""
    name = table.runtime.lower()
    if table.method in METHODS_OF[PIP] and not name.startswith("embedded"):
        return PIP
    return next((one for one in (AMPI, SMPI, EMBEDDED) if name.startswith(one)), "")


def own_rules(facts: Facts, method: str, runtime: str) -> Iterator[Diagnosis]:
    """The diagnoses that a runtime has of its own."""
    checks = [thread_locals_of_ampi(facts)] if (runtime, method) == (AMPI, "pie") else []
    if method in OWN_LIBC and runtime in (AMPI, PIP):
        checks.append(namespaces())
    if runtime in (AMPI, SMPI) and method not in OWN_LIBC:
        checks.append(hidden_state(facts))
    yield from (one for one in checks if one is not None)


def thread_locals_of_ampi(facts: Facts) -> Optional[Diagnosis]:
    if not facts.tls_size:
        return None
    return Diagnosis(
        "thread-local-under-pieglobals",
        LOST,
        "under -pieglobals thread-local variables are one for all ranks; with -tlsglobals as well each rank has its "
        "own, and they begin with garbage instead of their initial values",
        f"PT_TLS has {facts.tls_size} bytes",
        "make them plain variables, or use -pipglobals, -fsglobals, or -tlsglobals alone",
    )


def namespaces() -> Diagnosis:
    return Diagnosis(
        "too-many-namespaces",
        RISK,
        "each rank's libc takes static TLS of the loader's reserve, which is used up at 12 ranks; the loader has 16 "
        "namespaces",
        "any program",
        "run at most 11 ranks in a process, or 15 with GLIBC_TUNABLES=glibc.rtld.nns=16",
    )


def hidden_state(facts: Facts) -> Optional[Diagnosis]:
    """The runtime's own code is in the file under -tlsglobals: nothing tells there which calls are the program's."""
    if not facts.hidden or facts.holds_runtime:
        return None
    return Diagnosis(
        "hidden-libc-state",
        RISK,
        "libc keeps what these functions have between two calls, one for all ranks: a switch in between mixes it up",
        f"the program calls {named(list(facts.hidden))}",
        "call the variants that end in _r, or use -pipglobals under AMPI",
    )
