"""What is not compared, each with its reason. Takes nothing from a run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.support.host.plan import Query


@dataclass(frozen=True)
class NeverAsked:
    """Commands (a regular expression over the whole command) that say nothing comparable about a rank."""

    pattern: str
    reason: str

    def covers(self, query: Query) -> bool:
        return re.fullmatch(self.pattern, query.command) is not None


NEVER_ASKED = (
    NeverAsked(r"info (all-)?registers.*|p(rint)? \$(pc|sp|fp|rip|rsp|rbp)", "addresses, and registers that hold them"),
    NeverAsked(r"info threads?|thread.*", "a rank is not a thread of GDB's; threads are those of the process"),
    NeverAsked(r"info (inferiors?|proc.*)|inferior.*", "several ranks share one process"),
    NeverAsked(
        r"info (sharedlibrary|files|target|symbol-file.*)", "which object files there are is how ranks are made"
    ),
    NeverAsked(r"print argv\[0\]", "the program's path: an executable here, a shared object there"),
    NeverAsked(r"(bt|backtrace|where)( full)? \d+", "counts from the innermost frame, which is the runtime's"),
    NeverAsked(r"frame \d+", "numbers frames from the innermost one, which is the runtime's"),
    NeverAsked(
        r"call .*", "refused for a rank that does not run, whatever it calls; the rank that runs is asked in its walk"
    ),
    NeverAsked(r"print greeting\.size\(\)", "calls a function in the target: refused for a rank that does not run"),
)
