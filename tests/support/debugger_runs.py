"""What passed with which debugger: from a run's JUnit XML to docs/debuggers.json, and from there to docs/debuggers.md.

`python3 -m tests.support.debugger_runs XML... FOLDER...` prints the runs of this system as JSON; with names of such
JSON files alone it adds them to the documents. A debugger's run counts only if all of the debugger's folders were
run. Of several XML files a later one is about tests that were run again.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "docs" / "debuggers.json"
DOCUMENT = ROOT / "docs" / "debuggers.md"
SERVED = "inspector serve"
FOLDERS = {
    "GDB": ("tests/gdbext", "tests/oracle"),
    "LLDB": ("tests/lldbext",),
    SERVED: ("tests/inspector/serve",),
}
INTRODUCTION = """# Debuggers

What the tests found with which debugger. Written by `make test-debuggers`; do not edit. Each row shows the state on the
day of its run; defects that were mended since may still be listed.

"""
EXTENDED = """| debugger | its Python | system | gcc | libc | passed | failed | skipped |
|---|---|---|---|---|---|---|---|
"""
STOCK = """
Without any extension, through [`inspector serve`](serve.md), in all tests of `tests/inspector/serve`:

| GDB | LLDB | system | gcc | libc | passed | failed | skipped |
|---|---|---|---|---|---|---|---|
"""

Run = dict[str, Any]


def main(arguments: list[str]) -> int:
    reports = [Path(each) for each in arguments if each.endswith(".xml")]
    if reports:
        json.dump(runs_here(reports, arguments[len(reports) :]), sys.stdout, indent=1)
    else:
        add(path for path in map(Path, arguments) if path.exists())
    return 0


def runs_here(reports: list[Path], folders: list[str]) -> list[Run]:
    """The runs of the debuggers all of whose folders were run."""
    by_name = {name_of(case): case for xml in reports for case in ElementTree.parse(xml).getroot().iter("testcase")}
    cases = list(by_name.values())
    return [
        {**facts_of(debugger), **outcome(case for case in cases if name_of(case).startswith(needed))}
        for debugger, needed in FOLDERS.items()
        if set(needed) <= set(folders)
    ]


def name_of(case: ElementTree.Element) -> str:
    module = case.get("classname", "").replace(".", "/")
    return f"{module}.py::{case.get('name')}"


def outcome(cases: Iterator[ElementTree.Element]) -> Run:
    """How many tests passed, which failed, and which were skipped for what reason."""
    passed, failed = 0, []
    skipped: dict[str, list[str]] = {}
    for case in cases:
        skip = case.find("skipped")
        if skip is not None:
            skipped.setdefault(skip.get("message", ""), []).append(name_of(case))
        elif case.find("failure") is not None or case.find("error") is not None:
            failed.append(name_of(case))
        else:
            passed += 1
    return {"passed": passed, "failed": sorted(set(failed)), "skipped": {why: sorted(skipped[why]) for why in skipped}}


def facts_of(debugger: str) -> Run:
    """The versions of a debugger and of what matters to it on this system."""
    from tests.support.debuggers import find_gdb, find_lldb  # needs pytest, which adding runs to the documents does not

    path = find_lldb() if debugger == "LLDB" else find_gdb()
    script = "import sys; print(sys.version.split()[0])"
    asked = {"GDB": ("-nx", "-batch", "-ex", f"python {script}"), "LLDB": ("-x", "-b", "-o", f"script {script}")}
    if debugger == SERVED:
        other = {"lldb": version_of(find_lldb())}
    else:
        other = {"python": last(r"^(\d+\.\d+\.\d+)", answer([str(path), *asked[debugger]]))}
    return {
        "debugger": debugger,
        "version": version_of(path),
        **other,
        "system": last(r'^PRETTY_NAME="([^"]*)"', Path("/etc/os-release").read_text()),
        "gcc": answer(["gcc", "-dumpfullversion"]).strip(),
        "libc": platform.libc_ver()[1],
    }


def version_of(debugger: Path) -> str:
    return last(r"\b(\d+(?:\.\d+)+)", answer([str(debugger), "--version"]).partition("\n")[0])


def answer(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL).stdout


def last(pattern: str, text: str) -> str:
    """The group of a pattern in the last place where it matches, "?" if it matches nowhere."""
    places = re.findall(pattern, text, re.MULTILINE)
    return str(places[-1]) if places else "?"


def add(files: Iterator[Path]) -> None:
    """Put runs in place of older ones of the same debugger and system, and write both documents."""
    new = {key(run): run for file in files for run in json.loads(file.read_text())}
    if not new:
        return
    runs = {key(run): run for run in json.loads(RUNS.read_text())} if RUNS.exists() else {}
    runs.update(new)
    ordered = [runs[run] for run in sorted(runs)]
    RUNS.write_text(json.dumps(ordered, indent=1) + "\n")
    DOCUMENT.write_text(page(ordered))


def page(runs: list[Run]) -> str:
    return INTRODUCTION + "\n".join(parts(runs)).rstrip("\n") + "\n"


def parts(runs: list[Run]) -> Iterator[str]:
    """The tables, and below them what did not pass."""
    for title, is_served in ((EXTENDED, False), (STOCK, True)):
        rows = [row(run) for run in runs if (run["debugger"] == SERVED) is is_served]
        if rows:
            yield title + "\n".join(rows)
    for run in runs:
        yield from exceptions(run)


def key(run: Run) -> tuple[str, tuple[int, ...], str, str]:
    """What a run replaces older ones by, and the order of rows."""
    return run["debugger"], tuple(map(int, re.findall(r"\d+", run["version"]))), run["system"], run.get("lldb", "")


def name(run: Run) -> str:
    if run["debugger"] == SERVED:
        return f"GDB {run['version']} and LLDB {run['lldb']} through `{SERVED}`"
    return f"{run['debugger']} {run['version']}"


def row(run: Run) -> str:
    skipped = sum(map(len, run["skipped"].values()))
    first = (run["version"], run["lldb"]) if run["debugger"] == SERVED else (name(run), run["python"])
    cells = (*first, run["system"], run["gcc"], run["libc"], run["passed"], len(run["failed"]), skipped)
    return f"| {' | '.join(map(str, cells))} |"


def exceptions(run: Run) -> Iterator[str]:
    """Every test that did not pass, and why."""
    if run["failed"] or run["skipped"]:
        yield f"\n## {name(run)} on {run['system']}\n"
    lists = [("Failed:", run["failed"]), *((f"Skipped: {why}", names) for why, names in sorted(run["skipped"].items()))]
    for title, names in lists:
        if names:
            yield "\n".join([f"{title}\n", *(f"- `{name}`" for name in names)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
