"""`inspector snapshot`: what is said of a job is said of its snapshot when the job is gone; damage is told."""

from __future__ import annotations

import json
import random
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.schemas import FIELDS
from pieglobalsfind.errors import TargetError
from pieglobalsfind.target import KernelThread, MemoryMapping
from pieglobalsfind.targets.snapshot import SnapshotTarget
from tests.support.inspector.in_one_interpreter import in_one_interpreter
from tests.support.methods import Held, compile_kinds, hold
from tests.support.running import StartJob, built
from tests.support.sharing import Shared

PARTS = ("ranks", "globals", "pointers", "payload", "stacks", "waits")
METHODS = ("pie", "fs", "tls", "swap")


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def inspector(*words: object) -> Any:
    done = run(built("inspector"), *words)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def answers(target: object) -> dict[str, Any]:
    """What the inspector says of a target, but for the target's name and the time."""
    found: dict[str, Any] = {}
    for done in in_one_interpreter([(part, target, "--json") for part in PARTS]):
        assert done.returncode in (0, 1), (done.args, done.stderr)
        found[done.args[0]] = json.loads(done.stdout)
    for part in (*PARTS[:2], *PARTS[3:]):
        found[part] = found[part][part]
    found["pointers"] = {name: value for name, value in found["pointers"].items() if name not in FIELDS}
    for one in found["ranks"]:
        one.pop("source")
    return found


@pytest.fixture(params=METHODS)
def held(request: pytest.FixtureRequest, start_job: StartJob, tmp_path: Path, shared: Shared) -> Held:
    return hold(start_job, request.param, compile_kinds(request.param, tmp_path, shared))


def test_the_same_is_said_when_the_job_is_gone(held: Held, tmp_path: Path) -> None:
    file = tmp_path / "job.snapshot"
    before = answers(held.job.pid)
    taken = run(built("inspector"), "snapshot", held.job.pid, "-o", file)
    assert taken.returncode == 0 and "3 ranks" in taken.stdout, taken.stderr
    address = f"{held.truth[1]['exported'].address:#x}"
    place = run(built("pieglobalsfind"), "--pid", held.job.pid, "--json", address).stdout
    held.job.close()
    assert answers(file) == before
    found = run(built("pieglobalsfind"), "--snapshot", file, "--json", address).stdout
    assert json.loads(found) == json.loads(place)
    again = tmp_path / "again.snapshot"  # of a snapshot, and of all that it has
    assert run(built("inspector"), "snapshot", file, "-o", again, "--memory", "all").returncode == 0
    assert answers(again) == before


def test_how_much_is_kept(start_job: StartJob, tmp_path: Path, shared: Shared) -> None:
    held = hold(start_job, "pie", compile_kinds("pie", tmp_path, shared))
    sizes = {}
    for memory in ("none", "ranks", "data", "all"):
        file = tmp_path / memory
        assert run(built("inspector"), "snapshot", held.job.pid, "-o", file, "--memory", memory).returncode == 0
        sizes[memory] = file.stat().st_size
    assert sizes["none"] < sizes["ranks"] < sizes["data"] < sizes["all"]
    assert inspector("ranks", tmp_path / "none", "--json")["ranks"][1]["state"] == "blocked"
    assert inspector("stacks", tmp_path / "ranks", "--json")["stacks"][0]["calls"][0]["function"] == "main"
    unread = inspector("globals", tmp_path / "none", "--json")["globals"]
    assert len(unread) > 5 and {(one["differs"], one["verdict"]) for one in unread} == {(False, "unknown")}
    assert {one["value"] for each in unread for one in each["groups"]} == {"<can't be read, it is not in the snapshot>"}
    different = inspector("why-different", 0, 1, tmp_path / "none", "--json")
    assert (different["variables"], different["unread"]) == ([], len(unread))
    cases = inspector("payload", tmp_path / "none", "--what-if", "--json")["what_if"]
    assert all(
        case["pages"]["unread"] == case["bytes"]["used_stack"] == case["bytes"]["smallest"] > 0 for case in cases
    )
    whole = inspector("payload", tmp_path / "all", "--what-if", "--json")["what_if"]
    assert all(one["pages"]["unread"] == 0 for one in whole)
    assert (
        "can't be read, and count as differing"
        in run(built("inspector"), "payload", tmp_path / "none", "--what-if").stdout
    )
    assert "no rank has copies whose words" in run(built("inspector"), "pointers", tmp_path / "none").stdout
    kept, live = (inspector("audit", target, "--json") for target in (tmp_path / "none", held.job.pid))
    assert kept["methods"] and {**kept, "taken": ""} == {**live, "taken": ""}


def damaged(whole: bytes) -> Iterator[bytes]:
    """Cut short at many lengths, and with wrong bytes in many places."""
    chance = random.Random(7)
    for length in (4, 30, 31, 100, len(whole) // 2, len(whole) - 1, len(whole) - 22):
        yield whole[:length]
    for _ in range(20):
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 20)):
            changed[chance.randrange(4, len(changed))] = chance.randrange(256)
        yield bytes(changed)


def test_damage_is_told(start_job: StartJob, tmp_path: Path, shared: Shared) -> None:
    held = hold(start_job, "pie", compile_kinds("pie", tmp_path, shared))
    file = tmp_path / "job.snapshot"
    assert run(built("inspector"), "snapshot", held.job.pid, "-o", file).returncode == 0
    truth = inspector("globals", file, "--json")["globals"]
    broken = []
    for number, content in enumerate(damaged(file.read_bytes())):
        broken.append(tmp_path / f"broken{number}")
        broken[-1].write_bytes(content)
    refused = 0
    for done in in_one_interpreter([("globals", path, "--json") for path in broken]):
        assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2), done.stderr
        refused += done.returncode == 2
        if done.returncode == 0:  # a value is the right one, or is said to be missing
            for right, found in zip(truth, json.loads(done.stdout)["globals"]):
                for group in found["groups"]:
                    assert group["value"].startswith("<") or group["value"] in {one["value"] for one in right["groups"]}
    assert refused > 7


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"snapshot.json": "{}"}, "not a whole snapshot"),
        ({"other": "x"}, "not a whole snapshot"),
        ({"snapshot.json": "[" * 100000}, "not a whole snapshot"),
        ({"snapshot.json": json.dumps({"form": "ranklens-snapshot-9"})}, "ranklens-snapshot-9"),
    ],
)
def test_archives_that_are_none(content: dict[str, str], says: str, tmp_path: Path) -> None:
    file = tmp_path / "archive.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    done = run(built("inspector"), "ranks", file)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr, done.stderr


MAPPING = {"start": 4096, "end": 8192, "readable": True, "writable": True, "executable": False, "offset": 0, "path": ""}
VALUES = ("Infinity", "-Infinity", "NaN", "1.5", "1e400", "null", '"4096"', "[]", "{}", "-1", str(1 << 65))
THREAD = {"tid": 7, "registers": {"16": 4096}}


def archive_of(place: Path, maps: Iterable[str], threads: Iterable[str]) -> Path:
    """A snapshot of form 2 with these lines."""
    description = {"form": "ranklens-snapshot-2", "of": "x", "taken": "y", "build_ids": {}}
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("snapshot.json", json.dumps(description))
        for name, lines in (("maps.jsonl", maps), ("threads.jsonl", threads)):
            archive.writestr(name, "".join(f"{line}\n" for line in lines))
    return place


def damaged_values(row: dict[str, Any]) -> Iterator[str]:
    """A row with each of its values replaced by each of what JSON has, and without it."""
    for name in row:
        for value in VALUES:
            if json.dumps(row[name]) != value:
                rest = ", ".join(f'"{key}": {json.dumps(row[key])}' for key in row if key != name)
                yield f'{{{rest}, "{name}": {value}}}'
        yield json.dumps({key: row[key] for key in row if key != name})


def test_values_that_no_snapshot_has(tmp_path: Path) -> None:
    good = SnapshotTarget(str(archive_of(tmp_path / "good", [json.dumps(MAPPING)], [json.dumps(THREAD)])))
    assert good.maps() == (MemoryMapping(4096, 8192, True, True, False, 0, ""),)
    assert good.threads() == (KernelThread(7, {16: 4096}),)
    for line in (*damaged_values(MAPPING), "", "[]", "{", json.dumps({**MAPPING, "more": 1}), " " * 70_000):
        if '"path": "4096"' not in line:  # which is a path
            with pytest.raises(TargetError):
                SnapshotTarget(str(archive_of(tmp_path / "bad", [line], [])))
    for line in damaged_values(THREAD):
        if '"registers": {}' not in line:  # a thread may have none
            with pytest.raises(TargetError):
                SnapshotTarget(str(archive_of(tmp_path / "bad", [], [line])))
    with pytest.raises(TargetError):
        SnapshotTarget(str(archive_of(tmp_path / "bad", [json.dumps(MAPPING)] * 2, [])))


@pytest.mark.parametrize("name", ["snapshot.json", "maps.jsonl"])
def test_a_small_archive_costs_little(name: str, tmp_path: Path) -> None:
    """Of some hundred megabytes of JSON in it nothing is held in memory."""
    file = tmp_path / "bomb"
    description = {"form": "ranklens-snapshot-2", "of": "x", "taken": "y", "build_ids": {}}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        if name != "snapshot.json":
            archive.writestr("snapshot.json", json.dumps(description))
        with archive.open(name, "w", force_zip64=True) as entry:
            for _ in range(300):
                entry.write(b"[{},\n" * 200_000)
    assert file.stat().st_size < 1 << 20
    limited = f"ulimit -v {600 << 10}; exec {built('inspector')} ranks {file}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "not a whole snapshot" in done.stderr and "memory" not in done.stderr, done.stderr


def test_snapshots_of_the_first_form(start_job: StartJob, tmp_path: Path, shared: Shared) -> None:
    """They are read as before; this one is made of a new one, whose lines were in the description then."""
    held = hold(start_job, "pie", compile_kinds("pie", tmp_path, shared))
    new, old = tmp_path / "new.snapshot", tmp_path / "old.snapshot"
    assert run(built("inspector"), "snapshot", held.job.pid, "-o", new).returncode == 0
    with zipfile.ZipFile(new) as source, zipfile.ZipFile(old, "w", zipfile.ZIP_DEFLATED) as archive:
        content = json.loads(source.read("snapshot.json"))
        content["form"] = "ranklens-snapshot-1"
        for name in ("maps", "threads"):
            content[name] = [json.loads(line) for line in source.read(f"{name}.jsonl").splitlines()]
        archive.writestr("snapshot.json", json.dumps(content))
        for entry in source.namelist():
            if entry.startswith("memory/"):
                archive.writestr(entry, source.read(entry))
    kept, written_anew = (inspector("globals", file, "--json")["globals"] for file in (old, new))
    assert kept == written_anew != []


def test_pieces_of_impossible_size(tmp_path: Path) -> None:
    file = tmp_path / "archive.zip"
    description = {"form": "ranklens-snapshot-1", "of": "x", "taken": "y", "maps": [], "threads": [], "build_ids": {}}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("snapshot.json", json.dumps(description))
        archive.writestr("memory/1000", bytes(1 << 24))  # 16 MB that take 16 KB in the file
    done = run(built("inspector"), "ranks", file)
    assert done.returncode == 2 and "impossible size" in done.stderr


def test_bad_calls(start_job: StartJob, tmp_path: Path, shared: Shared) -> None:
    held = hold(start_job, "pie", compile_kinds("pie", tmp_path, shared))
    done = run(built("inspector"), "snapshot", held.job.pid, "-o", tmp_path / "nowhere" / "file")
    assert done.returncode == 2 and "can't be written" in done.stderr
    assert run(built("inspector"), "snapshot", held.job.pid).returncode == 2
    assert not list(tmp_path.glob(".file-*"))
