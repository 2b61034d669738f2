"""Adapt the diagnoses to a runtime: its methods, its own rules, and the general diagnoses that do not apply.

Takes the facts of a program's file and a runtime's name; gives diagnoses. docs/diagnoses.md has the table of all rules,
with what was run for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Optional

from pieglobalsfind.model import RankTable

from .method_diagnoses import LOST, METHODS, MOST_NAMESPACES, NAMES, RISK, Diagnosis, Judgement, judge, named

if TYPE_CHECKING:  # late, as in method_diagnoses
    from .program_facts import Facts

AMPI, SMPI, PIP, EMBEDDED = RUNTIMES = ("ampi", "smpi", "pip", "embedded")
METHODS_OF = {
    AMPI: ("pie", "pip", "fs", "tls", "swap", "none"),
    SMPI: ("fs", "mmap", "none"),
    PIP: ("pipthread", "pipprocess"),
    EMBEDDED: METHODS,
}
# Which general diagnoses do not hold, by runtime
NOT_SO = {
    # -pieglobals runs programs with thread-local variables; -tlsglobals links AMPI and the program into one executable,
    # whose thread-local variables are beside the thread pointer
    AMPI: ("thread-local-in-byte-copy", "dynamic-thread-local-storage"),
    SMPI: (),
    PIP: (),
    # It scans aligned addresses and registers its copies with the unwinder
    EMBEDDED: ("unaligned-writable-segment", "exceptions-in-byte-copy"),
}
# What is only a risk in general, and certain under this runtime
CERTAIN = {AMPI: ("unaligned-writable-segment", "exceptions-in-byte-copy"), SMPI: (), PIP: (), EMBEDDED: ()}
CURES = {
    (AMPI, "no-got-slots"): "compile and link with -swapglobals -fPIC -no-pie -Wl,--no-relax (GNU ld 2.40): AMPI takes "
    "absolute addresses, so that in a PIE it swaps nothing, or crashes at the start"
}
LIBC_TLS, RESERVE = 0x90, 1664  # bytes of static TLS of each libc, and of the loader's reserve (glibc 2.36)
OWN_LIBC = ("pip", "pipthread", "pipprocess")  # methods that give each rank a libc


def judge_for(facts: Facts, method: str, runtime: str, ranks: int = 0) -> Judgement:
    """How the program fares under a method of a runtime ("": of any), with so many ranks in a process (0: unknown)."""
    judged = judge(facts, method, ranks)
    if not runtime:
        return judged
    general = (
        replace(
            diagnosis,
            severity=LOST if diagnosis.id in CERTAIN[runtime] else diagnosis.severity,
            cure=CURES.get((runtime, diagnosis.id), diagnosis.cure),
        )
        for diagnosis in judged.diagnoses
        if diagnosis.id not in NOT_SO[runtime]
    )
    has_own_libc = method in OWN_LIBC and runtime in (AMPI, PIP)
    most = most_libcs(facts)
    notes = (libc_note(most),) if has_own_libc and not ranks else judged.notes
    few = (_many_libcs(ranks, most),) if has_own_libc and most < ranks <= MOST_NAMESPACES else ()
    return replace(judged, diagnoses=(*general, *few, *own_rules(facts, method, runtime)), notes=notes)


def most_libcs(facts: Facts) -> int:
    """How many copies of the program, each with its libc, the loader's reserve of static TLS holds."""
    own = facts.tls_size if facts.static_tls else 0
    return RESERVE // (LIBC_TLS + own)


def libc_note(most: int) -> str:
    """Say how many ranks a process may have."""
    return f"at most {most} ranks in a process, or {MOST_NAMESPACES} with GLIBC_TUNABLES=glibc.rtld.nns=16"


def methods_of(runtime: str) -> tuple[str, ...]:
    """The methods that a runtime has, or all."""
    return METHODS_OF.get(runtime, METHODS)


def of_job(table: RankTable) -> str:
    """The runtime of a job's ranks, "" if it is none of these."""
    name = table.runtime.lower()
    if table.method in METHODS_OF[PIP] and not name.startswith("embedded"):
        return PIP
    return next((runtime for runtime in (AMPI, SMPI, EMBEDDED) if name.startswith(runtime)), "")


def own_rules(facts: Facts, method: str, runtime: str) -> Iterator[Diagnosis]:
    """The diagnoses that a runtime has of its own."""
    checks = [_thread_locals_of_ampi(facts)] if (runtime, method) == (AMPI, "pie") else []
    if runtime in (AMPI, SMPI) and method not in OWN_LIBC:
        checks.append(hidden_state(facts))
    if runtime == SMPI and method != "none":
        checks.append(_libraries_of_smpi(facts, method))
    yield from (check for check in checks if check is not None)


def _libraries_of_smpi(facts: Facts, method: str) -> Optional[Diagnosis]:
    if not facts.libraries:
        return None
    return Diagnosis(
        "library-globals-shared",
        RISK,
        "SMPI privatizes the program alone: all ranks share the globals of its libraries",
        f"the program needs {named(list(facts.libraries))}",
        f"{'' if method == 'fs' else 'use smpi/privatization:dlopen, and '}"
        f"name those that keep state of a rank: --cfg=smpi/privatize-libs:{';'.join(facts.libraries[:NAMES])}",
    )


def _thread_locals_of_ampi(facts: Facts) -> Optional[Diagnosis]:
    if not facts.tls_size:
        return None
    return Diagnosis(
        "thread-local-under-pieglobals",
        LOST,
        "under -pieglobals thread-local variables are one for all ranks; with -tlsglobals as well each rank has its "
        "own, in the outermost part of its stack: they begin with garbage instead of their initial values, and more "
        "than some 100 bytes of them overwrite the variables of main",
        f"PT_TLS has {facts.tls_size} bytes",
        "make them plain variables, or use -pipglobals, -fsglobals, or -tlsglobals alone",
    )


def _many_libcs(ranks: int, most: int) -> Diagnosis:
    return Diagnosis(
        "too-many-namespaces",
        RISK,
        f"each rank's libc takes static TLS of the loader's reserve, which is used up after {most} ranks",
        f"{ranks} ranks in a process",
        "set GLIBC_TUNABLES=glibc.rtld.nns=16, which enlarges the reserve",
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
