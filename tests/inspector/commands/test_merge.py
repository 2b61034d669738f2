"""Files of several processes or moments in one: every rank once, whatever the order."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from inspector.analysis.report_schema import SCHEMA
from inspector.values.rank_span_map import RankValues
from pieglobalsfind.ranks.rankset import Span, written
from tests.inspector.commands.test_stacks import EVEN, ODD, functions
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN, Job


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BIN / "inspector"), *map(str, words)], capture_output=True, text=True, timeout=120)


def save(place: Path, *words: object) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    place.write_text(done.stdout)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


@pytest.fixture
def held(start_ranks: StartRanks) -> Job:
    return start_ranks(SOURCES / "waits.c", loops=True)


def test_stacks_of_parts_are_those_of_the_whole(held: Job, tmp_path: Path) -> None:
    parts = [tmp_path / f"part{number}.json" for number in range(3)]
    for place, ranks in zip(parts, ("0-1", "1-2", "2,3")):
        run_part = run("stacks", held.pid, "--nonblocking", "--rank", ranks, "--json")
        place.write_text(run_part.stdout)
    whole = save(tmp_path / "whole.json", "stacks", held.pid, "--nonblocking")
    for order in itertools.permutations(parts):
        merged = json.loads(run("merge", *order, "--json").stdout)
        assert functions(merged) == functions(whole) == {"0,2": EVEN, "1": ODD}
        assert [one["ranks"] for one in merged["missing"]] == ["3"]
    said = run("merge", *parts).stdout
    assert "main at waits.c" in said and said.index("\nrank 1: ") < said.index("\nranks 0,2: "), said
    assert "even > receive > MPI_Recv from" in said and "odd > receive > MPI_Recv from" in said


def test_the_newest_moment_counts(tmp_path: Path) -> None:
    def stacks(taken: str, function: str) -> dict[str, Any]:
        call = {"function": function, "file": "a.c", "line": 1, "library": ""}
        one = {"ranks": "0-1", "calls": [call]}
        form = {"schema": "ranklens-stacks-1", "target": "t", "taken": taken, "how": "", "rank_count": 2}
        return {**form, "stacks": [one], "missing": []}

    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(stacks("2026-01-01", "before")))
    new.write_text(json.dumps(stacks("2026-01-02", "after")))
    for order in ((old, new), (new, old)):
        assert functions(json.loads(run("merge", *order, "--json").stdout)) == {"0-1": ["after"]}


def test_reports(start_ranks: StartRanks, tmp_path: Path) -> None:
    """A report cut in two by ranks is whole again, and still keeps to its schema."""
    job = start_ranks(SOURCES / "ring.c", ranks=7)
    whole = save(tmp_path / "whole.json", "report", job.pid)
    halves = []
    for number, chosen in enumerate(({0, 1, 2}, {3, 4, 5, 6})):
        half = json.loads(json.dumps(whole))
        half["ranks"] = [one for one in half["ranks"] if one["rank"] in chosen]
        half["payload"] = [one for one in half["payload"] if one["rank"] in chosen]
        for one in half["globals"]:
            values = {rank: group["value"] for group in one["groups"] for rank in ranks(group["ranks"])}
            one["groups"] = [{"ranks": str(rank), "value": values[rank]} for rank in values if rank in chosen]
        place = tmp_path / f"half{number}.json"
        place.write_text(json.dumps(half))
        halves.append(place)
    merged = json.loads(run("merge", *halves, "--json").stdout)
    jsonschema.validate(merged, SCHEMA)

    def plain(report: dict[str, Any]) -> dict[str, dict[str, str]]:
        return {one["name"]: {group["ranks"]: group["value"] for group in one["groups"]} for one in report["globals"]}

    assert plain(merged) == plain(whole)
    assert merged["ranks"] == whole["ranks"] and merged["payload"] == whole["payload"]


@pytest.mark.parametrize("command", ["stacks", "report"])
def test_files_of_two_jobs(command: str, start_ranks: StartRanks, tmp_path: Path) -> None:
    """Rank 1 of one job is not rank 1 of another; two moments of one job are merged."""
    places = [tmp_path / f"{name}.json" for name in ("first", "later", "other")]
    job = start_ranks(SOURCES / "ring.c", ranks=4)
    for place in places[:2]:
        save(place, command, job.pid)
    other = start_ranks(SOURCES / "ring.c", ranks=4)
    save(places[2], command, other.pid)
    ids = [json.loads(place.read_text())["job"] for place in places]
    assert ids[0] == ids[1] != ids[2] and all(ids)
    assert run("merge", *places[:2]).returncode == 0
    done = run("merge", *places)
    sentence = f"inspector: {places[0]} is of job {ids[0]}, {places[2]} is of job {ids[2]}: merge files of one job\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_files_that_name_no_job(tmp_path: Path) -> None:
    """As the first versions wrote them: other numbers of ranks are other jobs all the same."""
    for ranks in (2, 3):
        form = {"schema": "ranklens-stacks-1", "target": "t", "taken": "", "how": "", "rank_count": ranks}
        (tmp_path / f"{ranks}.json").write_text(json.dumps({**form, "stacks": [], "missing": []}))
    done = run("merge", tmp_path / "2.json", tmp_path / "3.json")
    assert done.returncode == 2 and "of a job of 2 ranks" in done.stderr and "of a job of 3 ranks" in done.stderr


def ranks(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"schema": "x"}', '{"schema": "ranklens-stacks-1"}', "\x00", '{"schema": "ranklens-report-2"}',
     '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":1,"stacks":[{"ranks":"0-99999999","calls":[]}],"missing":[]}',
     '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":16777216,"stacks":[{"ranks":"0-16777215","calls":[]}],"missing":[]}',
     '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":3,"stacks":[{"ranks":"0-2","calls":[]},{"ranks":"1","calls":[]}],"missing":[]}',
     '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":3,"stacks":[{"ranks":"3","calls":[]}],"missing":[]}',
     '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":"many","stacks":[],"missing":[]}',
     '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":1e400,"stacks":[],"missing":[]}',
     "[" * 100_000],
)  # fmt: skip
def test_bad_files(content: str, tmp_path: Path) -> None:
    place = tmp_path / "bad.json"
    place.write_text(content)
    done = run("merge", place)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert run("merge", tmp_path / "nofile").returncode == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema": "ranklens-stacks-1"}', "does not follow its schema: write it again with --json"),
        (b"[1,\n2", "is not JSON, line 2, column 2: Expecting ',' delimiter: name files written by --json"),
        (b"\x7fELF\xed", "is not JSON, it is not text: name files written by --json"),
        (b"[" * 100_000, "is nested too deeply: name files written by --json"),
        (b"9" * 10_000, "has a number of too many digits: name files written by --json"),
    ],
)
def test_the_bad_file_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    """In our words, whichever of several it is."""
    good = '{"schema":"ranklens-stacks-1","target":"","taken":"","rank_count":1,"stacks":[],"missing":[]}'
    (tmp_path / "good.json").write_text(good)
    (tmp_path / "bad.json").write_bytes(content)
    done = run("merge", tmp_path / "good.json", tmp_path / "bad.json")
    assert (done.returncode, done.stderr) == (2, f"inspector: {tmp_path / 'bad.json'} {said}\n")
    nothing = run("merge", tmp_path / "good.json", "/dev/null")
    assert nothing.stderr == "inspector: /dev/null is not a file that --json has written\n"


def test_pipes(held: Job, tmp_path: Path) -> None:
    """As `<(...)` of a shell makes them; for one that nobody writes to nobody waits."""
    whole = save(tmp_path / "whole.json", "stacks", held.pid)
    script = f'"$0" merge <(sleep 0.2; cat {tmp_path}/whole.json) <(cat {tmp_path}/whole.json) --json'
    done = subprocess.run(["bash", "-c", script, str(BIN / "inspector")], capture_output=True, text=True, timeout=60)
    assert functions(json.loads(done.stdout)) == functions(whole)
    os.mkfifo(tmp_path / "pipe")
    nothing = run("merge", tmp_path / "pipe")
    assert nothing.returncode == 2 and f"{tmp_path / 'pipe'} is not JSON" in nothing.stderr


@pytest.mark.parametrize("seed", range(20))
def test_values_by_spans_are_those_by_ranks(seed: int) -> None:
    """Spans entered at random, compared with a plain dictionary of ranks."""
    draw = random.Random(seed)
    values, plain = RankValues(), dict[int, str]()
    for _ in range(60):
        first = draw.randrange(100)
        span, value = Span(first, first + draw.randrange(20)), draw.choice("abc")
        values.enter(span, value)
        plain.update(dict.fromkeys(range(span.first, span.last + 1), value))
    groups = {value: ranks(written(spans)) for value, spans in values.groups()}
    assert groups == {value: sorted(rank for rank in plain if plain[rank] == value) for value in set(plain.values())}
    counts = [len(ranks) for ranks in groups.values()]
    assert counts == sorted(counts, reverse=True)


def test_a_small_file_costs_little(tmp_path: Path) -> None:
    """Every variable of a report is in all of a million ranks, of which the file describes one."""
    groups = [{"ranks": "0-1048575", "value": "1"}]
    content = {"schema": "ranklens-report-2", "rank_count": 1 << 20, "payload": [], "taken": ""}
    content["ranks"] = [{"rank": 7, "state": "ready"}]
    content["globals"] = [
        {"name": f"v{number}", "object": "p", "groups": groups, "differs": False} for number in range(5000)
    ]
    place = tmp_path / "wide.json"
    place.write_text(json.dumps(content))
    limited = f"ulimit -v {400 << 10}; exec {BIN}/inspector merge --json {place}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {group["ranks"] for one in json.loads(done.stdout)["globals"] for group in one["groups"]} == {"7"}
