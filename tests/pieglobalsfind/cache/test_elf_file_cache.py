"""The cache: what was stored comes back, and nothing else ever does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pieglobalsfind.cache import elf_file_cache

BUILD_ID = b"\x12\x34"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the cache is, by the fixture that every test has."""
    return tmp_path / "cache" / "ranklens" / "index"


@pytest.fixture
def program(tmp_path: Path) -> elf_file_cache.FileState:
    """A file that something is kept of."""
    return state(tmp_path / "program", BUILD_ID)


def state(path: Path, build_id: bytes) -> elf_file_cache.FileState:
    """The state of a file, which is made if it is not there."""
    if not path.exists():
        path.write_text("content of a program")
    file_state = elf_file_cache.state_of(str(path), build_id)
    assert file_state is not None
    return file_state


def entry(folder: Path, file: elf_file_cache.FileState, kind: str = "kind") -> Path:
    return folder / f"{file.name}.{kind}"


def test_stored_and_loaded(folder: Path, program: elf_file_cache.FileState) -> None:
    assert elf_file_cache.load(program, "kind") is None
    elf_file_cache.store(program, "kind", b"content")
    elf_file_cache.store(program, "other", b"")
    assert elf_file_cache.load(program, "kind") == b"content"
    assert elf_file_cache.load(program, "other") == b""
    assert elf_file_cache.load(replace(program, build_id=b"\x12"), "kind") is None
    assert sorted(path.name for path in folder.iterdir()) == [
        entry(folder, program).name,
        entry(folder, program, "other").name,
    ]
    assert [one.stat().st_mode & 0o777 for one in (folder, folder.parent)] == [0o700, 0o700]


def test_damage_is_nothing(folder: Path, program: elf_file_cache.FileState) -> None:
    elf_file_cache.store(program, "kind", b"content" * 50)
    path = entry(folder, program)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert elf_file_cache.load(program, "kind") is None
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert elf_file_cache.load(program, "kind") is None
    path.write_bytes(whole + b"x")
    assert elf_file_cache.load(program, "kind") is None
    path.write_bytes(whole)
    assert elf_file_cache.load(program, "kind") == b"content" * 50


def test_what_is_no_file_of_ours(folder: Path, tmp_path: Path, program: elf_file_cache.FileState) -> None:
    elf_file_cache.store(program, "kind", b"content")
    path = entry(folder, program)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert elf_file_cache.load(program, "kind") is None
    path.unlink()
    os.mkfifo(path)
    assert elf_file_cache.load(program, "kind") is None
    path.unlink()
    path.mkdir()
    assert elf_file_cache.load(program, "kind") is None
    elf_file_cache.store(program, "kind", b"content")
    assert path.is_dir() and names(folder) == {path.name}


def test_a_file_that_claims_anothers_build_id(tmp_path: Path, program: elf_file_cache.FileState) -> None:
    """Nothing that was read of one is given of the other, nor of the same file once it has been written to."""
    evil = state(tmp_path / "evil", BUILD_ID)
    elf_file_cache.store(evil, "kind", b"lies")
    assert elf_file_cache.load(program, "kind") is None
    elf_file_cache.store(program, "kind", b"content")
    with open(program.path, "a") as file:
        file.write("changed")
    os.utime(program.path, ns=(program.modified, program.modified))
    elf_file_cache.store(program, "other", b"of the old content")
    changed = state(Path(program.path), BUILD_ID)
    assert elf_file_cache.load(changed, "kind") is None and elf_file_cache.load(program, "other") is None


@pytest.mark.parametrize("kind", ["", "a/b", "../x", "x" * 65, "a\0b"])
def test_kinds_are_names(kind: str, folder: Path, program: elf_file_cache.FileState) -> None:
    elf_file_cache.store(program, kind, b"content")
    assert elf_file_cache.load(program, kind) is None
    assert not folder.exists()


def test_no_build_id_no_cache(folder: Path) -> None:
    assert elf_file_cache.state_of("/proc/self/exe", b"") is None
    elf_file_cache.store(None, "kind", b"content")
    assert elf_file_cache.load(None, "kind") is None
    assert not folder.exists()


def test_a_place_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: elf_file_cache.FileState
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", Path("/proc/1")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        elf_file_cache.store(program, "kind", b"content")
        assert elf_file_cache.load(program, "kind") is None


def test_relative_places_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: elf_file_cache.FileState
) -> None:
    """As the XDG Base Directory Specification says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    elf_file_cache.store(program, "kind", b"content")
    assert not (tmp_path / "relative").exists()
    assert entry(tmp_path / "home/.cache/ranklens/index", program).exists()


def put(folder: Path, name: str, days: float = 0, size: int = 1000) -> None:
    """An entry that was used so long ago."""
    (folder / name).write_bytes(bytes(size))
    age(folder / name, days)


def age(path: Path, days: float) -> None:
    used = time.time() - days * 24 * 3600
    os.utime(path, (used, used), follow_symlinks=False)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_nobody_has_used_for_a_month_is_removed(
    folder: Path, tmp_path: Path, program: elf_file_cache.FileState
) -> None:
    """With the next that is stored; and nothing that is not ours."""
    elf_file_cache.store(program, "kind", b"used again")
    foreign = {"1234", "README", "abcd.elsewhere", "abcd.folder"}
    (folder / "abcd.folder").mkdir()
    (folder / "abcd.elsewhere").symlink_to(tmp_path)
    for name in ("1234", "README", "aa.kind", "bb.kind", "partial-old", "partial-new"):
        put(folder, name, days=29)
    for name in foreign | {"aa.kind", entry(folder, program).name}:
        age(folder / name, 31)
    age(folder / "partial-new", 0)
    assert elf_file_cache.load(program, "kind") == b"used again"
    new = replace(program, build_id=b"\xcc")
    elf_file_cache.store(new, "kind", b"new")
    assert names(folder) == foreign | {entry(folder, program).name, entry(folder, new).name, "bb.kind", "partial-new"}


def test_all_that_is_kept_has_a_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch, program: elf_file_cache.FileState
) -> None:
    """What has been unused for longest goes first, if that makes room; what was stored last stays."""
    elf_file_cache.store(program, "kind", b"")
    monkeypatch.setattr(elf_file_cache, "MOST", 3500)
    for days, name in enumerate(("aa.kind", "bb.kind", "cc.kind", "dd.kind"), 1):
        put(folder, name, days)
    age(entry(folder, program), 5)
    new = replace(program, build_id=b"\xee")
    elf_file_cache.store(new, "kind", bytes(1000))
    assert names(folder) == {entry(folder, new).name, "aa.kind", "bb.kind", entry(folder, program).name}
    last = replace(program, build_id=b"\xff")
    elf_file_cache.store(last, "kind", bytes(4000))
    assert names(folder) == {entry(folder, last).name}


WRITER = """
import sys
from pieglobalsfind.cache import elf_file_cache as index
index.MOST = 12_000
program = index.state_of(sys.argv[2], b"\x12\x34")
for count in range(200):
    index.store(program, "kind", sys.argv[1].encode() * 5000)
    found = index.load(program, "kind")
    assert found in (b"a" * 5000, b"b" * 5000, None), found
    index.store(index.state_of(sys.argv[2], bytes([count])), "kind", sys.argv[1].encode() * 500)
"""


def test_two_writers_at_once(folder: Path, program: elf_file_cache.FileState) -> None:
    """Each load sees one of the two, whole, or finds it removed; no partial file stays behind, nor more than fits."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, word, program.path]) for word in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    elf_file_cache.store(program, "kind", b"")
    left = list(folder.iterdir())
    assert all(path.suffix == ".kind" for path in left) and 5 < len(left) < 25
    assert sum(path.stat().st_size for path in left) < 14_000
