"""What two runs of GDB's test suite say, assertion by assertion.

Takes the texts of two gdb.sum files of DejaGnu: of processes, and of ranks. Pure; it knows nothing of GDB.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

RESULT = re.compile(r"^(PASS|FAIL|XPASS|XFAIL|KPASS|KFAIL|UNRESOLVED|UNTESTED|UNSUPPORTED|ERROR): (\S+\.exp): (.*)$")
NOT_REACHED = "not reached"
# What differs from run to run in an assertion's name; what follows it in parentheses is how it failed.
VOLATILE = re.compile(r"0x[0-9a-f]+|\b\d{4,}\b")
HOW = re.compile(r"(?: \([^()]*\))+$")


@dataclass(frozen=True)
class Assertion:
    """One assertion of a test file; `number` tells those of one name apart, in their order."""

    file: str
    name: str
    number: int = 0


@dataclass(frozen=True)
class Difference:
    """An assertion that passes in a process; `in_rank`: what it does in a rank."""

    assertion: Assertion
    in_rank: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """All assertions that pass in a process. `compared` of them were reached in a rank, too."""

    passed: int
    compared: int
    equal: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Known:
    """A difference that is known: which file, which assertions (a pattern for the whole name), and why."""

    file: str
    name: re.Pattern[str]
    reason: str


def results(text: str) -> dict[Assertion, str]:
    """What each assertion did."""
    found: dict[Assertion, str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        match = RESULT.match(line)
        if match is not None:
            file, name = match[2], VOLATILE.sub("N", HOW.sub("", match[3])).strip()
            found[Assertion(file, name, counts[file, name])] = match[1]
            counts[file, name] += 1
    return found


def known_differences(lines: Iterable[str]) -> tuple[Known, ...]:
    """`FILE: PATTERN => REASON` a line; empty lines and those that begin with # say nothing."""
    found = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            where, _, reason = line.strip().partition(" => ")
            file, _, pattern = where.partition(": ")
            found.append(Known(file, re.compile(pattern), reason))
    return tuple(found)


def compared(native: Mapping[Assertion, str], in_rank: Mapping[Assertion, str], knowns: Sequence[Known]) -> Comparison:
    passed = [assertion for assertion, result in native.items() if result == "PASS"]
    reached = [assertion for assertion in passed if assertion in in_rank]
    differences = [
        Difference(assertion, in_rank.get(assertion, NOT_REACHED), reason_of(assertion, knowns))
        for assertion in passed
        if in_rank.get(assertion) != "PASS"
    ]
    equal = sum(in_rank[assertion] == "PASS" for assertion in reached)
    return Comparison(len(passed), len(reached), equal, tuple(differences))


def reason_of(assertion: Assertion, known: Iterable[Known]) -> str:
    """Why an assertion is known to differ, "" if it is not."""
    for one in known:
        if one.file == assertion.file and one.name.fullmatch(assertion.name):
            return one.reason
    return ""
