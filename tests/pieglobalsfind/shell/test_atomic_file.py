"""Files that are written in one step: whole, or as they were before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pieglobalsfind.errors import UsageError
from pieglobalsfind.shell.atomic_file import check_place, whole_file, write_whole


def test_what_was_there_stays_until_all_is_written(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("old")
    with whole_file(place, "") as file:
        file.write(b"new")
        file.flush()
        assert place.read_text() == "old"
    assert place.read_text() == "new" and place.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_of_half_a_file(error: type[BaseException], tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("old")
    with pytest.raises(error), whole_file(place, "") as file:
        file.write(b"ne")
        raise error
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written, No space left"), whole_file(tmp_path / "file", ""):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    """A superuser who names /dev/null would have a file there."""
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    for place in (pipe, folder, link):
        with pytest.raises(UsageError, match=f"{place.name} can't be written, it is not a regular file"):
            write_whole(place, "text", "")
    assert pipe.is_fifo() and folder.is_dir() and link.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3 and not list(folder.iterdir())


def test_a_name_of_an_open_file_is_never_replaced(tmp_path: Path) -> None:
    """As /dev/stdout is a link to the kernel's name of an open file; a superuser would have a file there instead."""
    other, link, further = tmp_path / "other", tmp_path / "stdout", tmp_path / "further"
    with other.open("w") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        further.symlink_to("stdout")
        for place in (link, further, Path(f"/dev/fd/{file.fileno()}")):
            with pytest.raises(UsageError, match=f"{place.name} can't be written, it stands for an open file"):
                write_whole(place, "text", "")
    assert link.is_symlink() and further.is_symlink() and other.read_text() == ""
    assert len(list(tmp_path.iterdir())) == 3


def test_whether_a_place_can_be_written_is_known_before(tmp_path: Path) -> None:
    place = tmp_path / "file"
    check_place(place, "")
    assert not list(tmp_path.iterdir())
    place.write_text("old")
    check_place(place, "")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]
    for bad in (tmp_path, place / "below", tmp_path / "no" / "file", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match="can't be written"):
            check_place(bad, "")


def test_a_link_to_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """Whoever may write in /tmp can put one where a map for perf will be."""
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_text("somebody's")
    link.symlink_to(other)
    write_whole(link, "ours", "")
    assert (other.read_text(), link.read_text(), link.is_symlink()) == ("somebody's", "ours", False)
