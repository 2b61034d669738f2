"""Two runs of a test suite, compared assertion by assertion."""

from __future__ import annotations

from tests.gdb_suite.compare import NOT_REACHED, Assertion, compared, known_differences, results

NATIVE = """
PASS: gdb.base/a.exp: list
PASS: gdb.base/a.exp: next
PASS: gdb.base/a.exp: next
FAIL: gdb.base/a.exp: finish
PASS: gdb.base/a.exp: break at 0x55555555 in 12345
PASS: gdb.base/a.exp: never come to
"""
IN_RANK = """
PASS: gdb.base/a.exp: list
PASS: gdb.base/a.exp: next
FAIL: gdb.base/a.exp: next (the program exited)
PASS: gdb.base/a.exp: finish
PASS: gdb.base/a.exp: break at 0x2000080000 in 678901
"""


def test_what_passes_in_a_process_is_compared() -> None:
    comparison = compared(results(NATIVE), results(IN_RANK), ())
    assert (comparison.passed, comparison.compared, comparison.equal) == (5, 4, 3)
    assert [(difference.assertion, difference.in_rank, difference.reason) for difference in comparison.differences] == [
        (Assertion("gdb.base/a.exp", "next", 1), "FAIL", ""),
        (Assertion("gdb.base/a.exp", "never come to"), NOT_REACHED, ""),
    ]


def test_a_known_difference_has_its_reason() -> None:
    knowns = known_differences(["# none", "", "gdb.base/a.exp: n(ex|o)t => it is so", "gdb.base/b.exp: .* => not this"])
    comparison = compared(results(NATIVE), results(IN_RANK), knowns)
    assert [difference.reason for difference in comparison.differences] == ["it is so", ""]
