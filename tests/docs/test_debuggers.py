"""The page of debuggers is written from runs, and a run counts only with all of its folders."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.debugger_runs import DOCUMENT, RUNS, SERVED, page, runs_here

CASES = """<testsuites><testsuite>
<testcase classname="tests.inspector.serve.test_gdb" name="test_core"/>
<testcase classname="tests.inspector.serve.test_lldb" name="test_dap"><skipped message="no lldb-dap"/></testcase>
<testcase classname="tests.inspector.serve.test_gdb" name="test_live"><failure/></testcase>
<testcase classname="tests.inspector.test_report" name="test_other"/>
</testsuite></testsuites>"""


def test_the_page_is_that_of_the_runs() -> None:
    assert DOCUMENT.read_text() == page(json.loads(RUNS.read_text()))


def test_a_run_of_serve_has_a_row_with_both_debuggers(tmp_path: Path) -> None:
    report = tmp_path / "cases.xml"
    report.write_text(CASES)
    assert runs_here([report], ["tests/lldbext/test_dap.py"]) == []
    (run,) = runs_here([report], ["tests/inspector/serve"])
    assert (run["debugger"], run["passed"]) == (SERVED, 1)
    assert run["failed"] == ["tests/inspector/serve/test_gdb.py::test_live"]
    assert (
        f"| {run['version']} | {run['lldb']} | {run['system']} | {run['gcc']} | {run['libc']} | 1 | 1 | 1 |\n"
        in page([run])
    )
