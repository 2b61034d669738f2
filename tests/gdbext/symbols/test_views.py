"""Views: what is changed in a file, that nothing else is, and how they are kept."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from gdbext.symbols import view_cache, views
from pieglobalsfind.errors import ObjectFileError
from tests.support.running import ROOT

SOURCE = "int shared = 1;\nconst int fixed = 2;\nstatic int own;\nint *get(void) { return own ? &shared : &own; }\n"
SHF_ALLOC, SHF_EXECINSTR = 2, 4


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "small.c").write_text(SOURCE)
    path = folder / "libsmall.so"
    command = ["cc", "-g", "-shared", "-fPIC", str(folder / "small.c"), "-o", str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


def tool(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, timeout=60)


def changed_ranges(one: bytes, other: bytes) -> Iterator[int]:
    assert len(one) == len(other)
    return (at for at, (a, b) in enumerate(zip(one, other)) if a != b)


def test_what_is_changed_and_nothing_else(library: Path) -> None:
    view = Path(views.view_of(str(library), b"\x12\x34"))
    before, after = library.read_bytes(), view.read_bytes()
    assert view != library and view.name == library.name and "1234-" in view.parent.name
    allowed = set()
    with library.open("rb") as file:
        elf = ELFFile(file)
        for index, section in enumerate(elf.iter_sections()):
            if section["sh_flags"] & SHF_ALLOC:
                start = elf["e_shoff"] + index * elf["e_shentsize"]
                allowed |= set(range(start + 8, start + 16))
            if isinstance(section, DynamicSection):
                spare = [number for number, tag in enumerate(section.iter_tags())][-1]
                start = section["sh_offset"] + spare * 16
                allowed |= set(range(start, start + 16))
    assert set(changed_ranges(before, after)) <= allowed
    with view.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if section["sh_flags"] & SHF_ALLOC:
                assert section["sh_flags"] & SHF_EXECINSTR, section.name
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        tags = [tag.entry.d_tag for tag in dynamic.iter_tags()]
    assert "DT_SYMBOLIC" in tags and tags[-1] == "DT_NULL"


def test_an_anchor_has_the_sections_in_memory_alone(library: Path) -> None:
    """They are where the view has them. GDB finds no symbol in it, and no build-id to look for a debug file."""
    view = Path(views.view_of(str(library), b"\x12\x34"))
    in_memory = []
    for path in (view, Path(views.anchor_of(str(view)))):
        with path.open("rb") as file:
            elf = ELFFile(file)
            allocated = [section for section in elf.iter_sections() if section["sh_flags"] & SHF_ALLOC]
            in_memory.append(
                [
                    (section.name, section["sh_addr"], section["sh_size"], section["sh_type"] == "SHT_NOBITS")
                    + (() if section["sh_type"] == "SHT_NOBITS" else (section.data(),))
                    for section in allocated
                ]
            )
            if path != view:
                kinds = {section["sh_type"] for section in elf.iter_sections()}
                assert kinds == {"SHT_NULL", "SHT_PROGBITS", "SHT_NOBITS", "SHT_STRTAB"}
                assert elf.num_segments() == 0
    assert in_memory[0] == in_memory[1] and len(in_memory[0]) > 10


def test_it_is_made_once_and_is_the_users_own(library: Path) -> None:
    view = Path(views.view_of(str(library), b"\x01"))
    made = view.stat().st_mtime_ns
    assert views.view_of(str(library), b"\x01") == str(view)
    assert view.stat().st_mtime_ns == made
    for folder in (view.parent, view.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    names = {path.name for path in view.parent.iterdir()}
    assert names == {view.name, Path(views.anchor_of(str(view))).name}, "nothing partial is left behind"


def age(path: Path) -> Path:
    """As if nobody had used it for a little more than a month."""
    past = time.time() - view_cache.UNUSED - 60
    os.utime(path, (past, past), follow_symlinks=False)
    return path


def test_what_nobody_uses_is_removed(library: Path, tmp_path: Path) -> None:
    unused, used, fresh = (Path(views.view_of(str(library), bytes([number]))).parent for number in (1, 2, 3))
    folder, elsewhere = unused.parent, tmp_path / "elsewhere"
    elsewhere.mkdir()
    others = [folder / "mine", folder / f"abc-{'0' * 16}", folder / f"abd-{'0' * 16}", folder / f"{'0' * 16}"]
    others[0].mkdir()
    others[1].symlink_to(elsewhere)
    others[2].write_text("no folder")
    others[3].mkdir()
    crashed = folder / f"{view_cache.REMOVED}x1"  # what was left by a debugger that was killed as it removed
    crashed.mkdir()
    (crashed / unused.name).mkdir()
    for path in (unused, used, crashed, *others):
        age(path)
    assert views.view_of(str(library), bytes([2])) == str(used / library.name)
    view_cache.remove_unused(str(folder))
    assert set(folder.iterdir()) == {used, fresh, *others}
    assert elsewhere.exists()
    assert Path(views.view_of(str(library), bytes([1]))).exists(), "it is made again"


def test_making_a_view_removes_unused_ones(library: Path) -> None:
    unused = age(Path(views.view_of(str(library), b"\x01")).parent)
    made = Path(views.view_of(str(library), b"\x02")).parent
    assert set(made.parent.iterdir()) == {made} and not unused.exists()


def test_nothing_is_removed_while_somebody_looks_for_a_view(library: Path) -> None:
    """In another process: the lock is the kernel's."""
    unused = age(Path(views.view_of(str(library), b"\x01")).parent)
    remove = f"import gdbext.symbols.view_cache as kept; kept.remove_unused({str(unused.parent)!r})"
    command = [sys.executable, "-c", remove]
    with view_cache.locked(str(unused.parent), fcntl.LOCK_SH):
        subprocess.run(command, check=True, timeout=60, cwd=ROOT)
        assert list(unused.parent.iterdir()) == [unused]
    subprocess.run(command, check=True, timeout=60, cwd=ROOT)
    assert list(unused.parent.iterdir()) == []


def test_a_relative_cache_folder_is_ignored(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the XDG Base Directory Specification says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert views.view_of(str(library), b"\x01").startswith(str(tmp_path / "home/.cache/ranklens/views/"))
    assert not (tmp_path / "relative").exists()


def test_a_file_that_was_rebuilt_has_another_view(library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "libsmall.so"
    copy.write_bytes(library.read_bytes())
    first = views.view_of(str(copy), b"")
    copy.write_bytes(library.read_bytes() + b"\0")
    assert views.view_of(str(copy), b"") != first


def test_without_debug_information_the_file_serves_itself(library: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped.so"
    tool("strip", "-g", "-o", stripped, library)
    assert views.view_of(str(stripped), b"") == str(stripped)


def test_a_separate_debug_file_is_joined(library: Path, tmp_path: Path) -> None:
    stripped, debug = tmp_path / "libsmall.so", tmp_path / "libsmall.so.debug"
    tool("objcopy", "--only-keep-debug", library, debug)
    tool("strip", "-g", "-o", stripped, library)
    view = views.view_of(str(stripped), b"", str(debug))
    with open(view, "rb") as file:
        elf = ELFFile(file)
        text = elf.get_section_by_name(".text")
        assert elf.has_dwarf_info() and text is not None and text["sh_type"] == "SHT_PROGBITS"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + b"\0" * 200])
def test_what_is_no_elf_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)
    with pytest.raises(ObjectFileError):
        views.view_of(str(path), b"")


def test_every_cut_of_a_file_is_survived(library: Path, tmp_path: Path) -> None:
    content, path = library.read_bytes(), tmp_path / "cut"
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        try:
            views.view_of(str(path), b"")
        except ObjectFileError as error:
            assert str(path) in error.sentence


def test_a_cache_that_can_t_be_written(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object's own file is not to blame."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ObjectFileError, match=r"can't be kept in .*/file/ranklens.*: set XDG_CACHE_HOME"):
        views.view_of(str(library), b"")


def test_a_vanished_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ObjectFileError, match=r"cannot read .*gone"):
        views.view_of(str(tmp_path / "gone"), b"")
