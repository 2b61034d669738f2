"""A new user's C++ program of 62 globals on 64 ranks, two of them deadlocked: does each output give the answer?

The truth is the program's own: what it fills by the rank differs, what it fills alike is equal.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inspector.ranks import SOURCES
from tests.support.running import BIN, Job
from tests.support.sharing import Shared
from tests.support.waiting import wait_until

SOURCE = SOURCES / "answers.cpp"
RANKS = 64
ALONE = 37
VARIABLES = 62  # two of them libstdc++'s own, which no rank writes
DEADLOCK_IN_HTML = "deadlock</b>: ranks 13-14 wait for one another, 13 -&gt; 14 -&gt; 13"


def names_of(macro: str) -> set[str]:
    """The variables that a list of the source declares."""
    text = re.search(rf"#define {macro}\(apply\)(.*?)\n(?:#define|//|\n)", SOURCE.read_text(), re.DOTALL)
    assert text is not None
    return set(re.findall(r"apply\([^()]*, (\w+)\)", text[1]))


DIFFERENT = {f"fluid::{name}" for name in (*names_of("OWN"), "particles")} | {
    "Field<int>::values", "Field<int>::previous", "residual", "lost_steps", "rank",
}  # fmt: skip
EQUAL = {f"setup::{inner}{name}" for inner in ("", "backup::") for name in names_of("SAME")} | {
    *(f"Field<double>::{name}" for name in ("name", "values", "previous")), "Field<int>::name", "heading", "ranks",
}  # fmt: skip


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, shared: Shared) -> Iterator[Job]:
    folder = tmp_path_factory.mktemp("answers")
    program = shared.copied([BIN / "rankcxx", "-std=c++17", "-g", SOURCE], folder / "answers.so")
    running = Job([str(BIN / "rankrun"), "-n", str(RANKS), str(program)], folder)
    try:
        running.wait_for("ready")
        wait_until(lambda: "13 -> 14 -> 13" in told(running, "waits"), "the two ranks' deadlock")
        yield running
    finally:
        running.close()


def told(job: Job, *words: str) -> str:
    """What a command prints into a pipe."""
    command = [str(BIN / "inspector"), words[0], str(job.pid), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_containers_that_differ_are_different_and_the_others_equal(job: Job) -> None:
    found = {value["name"]: value for value in json.loads(told(job, "globals", "--json"))["globals"]}
    assert len(found) == VARIABLES
    assert {name for name, value in found.items() if value["differs"]} == DIFFERENT
    assert found.keys() - DIFFERENT >= EQUAL
    assert not any(value.get("uncompared") for value in found.values())
    assert f"{len(DIFFERENT)} of {VARIABLES} differ between ranks" in told(job, "globals", "--differ")


@pytest.mark.parametrize("name", ["particles", "ghosts", "neighbours"])
def test_each_rank_has_its_own_contents(job: Job, name: str) -> None:
    groups = {
        group["ranks"]: group["value"]
        for value in json.loads(told(job, "globals", f"fluid::{name}", "--json"))["globals"]
        for group in value["groups"]
    }
    assert set(groups) == {str(rank) for rank in range(RANKS)}
    first = {"particles": "{position = {%d, 0, 1}, kind = 0}", "ghosts": "%d", "neighbours": "%d"}[name]
    assert all(f"length 20 = {{{first % int(rank)}, " in value for rank, value in groups.items())


def test_a_deadlock_is_named_in_text_json_and_html(job: Job, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    verdict = json.loads(told(job, "report", "--json", "--html", str(page)))["verdict"]
    assert (verdict["kind"], verdict["ranks"]) == ("deadlock", "13-14")
    assert re.search(r"^deadlock: ranks 13-14 wait for one another, 13 -> 14 -> 13$", told(job, "report"), re.MULTILINE)
    assert DEADLOCK_IN_HTML in page.read_text()


def test_the_rank_that_differs_alone_is_the_first_finding(job: Job) -> None:
    findings = json.loads(told(job, "report", "--json"))["verdict"]["findings"]
    assert findings[0]["sentence"] == f"lost_steps: rank {ALONE} alone has 900, the other {RANKS - 1} have 3"
    assert told(job, "report").split("\n- ")[1].startswith("lost_steps")


@pytest.mark.parametrize("command", ["globals", "report", "ranks", "waits", "payload", "stacks"])
def test_a_pipe_has_whole_lines_without_blanks_at_their_ends(job: Job, command: str) -> None:
    lines = told(job, command).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_grep_finds_every_record(job: Job) -> None:
    lines = [line for line in told(job, "globals").splitlines() if "residual" in line]
    assert len(lines) == 6  # as many values as it has
    assert sorted(line.split("\t")[-1] for line in lines) == [str(value) for value in range(6)]
