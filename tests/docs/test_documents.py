"""Documents name files that are there, and the picture of the layers is that of the code."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
PATH_IN_CODE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*\.(?:py|c|h|md|svg|toml|sh|S|cpp|json))`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    .*$", re.MULTILINE)
IN_COMMAND = re.compile(r"(?<![\w./-])((?:tests|docs|\.ci|runtime-hooks|packaging)/[\w./-]*[\w/])")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
OUR_FOLDERS = ("pieglobalsfind", "gdbext", "lldbext", "inspector", "runtime-hooks", "tests", "docs", ".ci")


def named_files(document: Path) -> Iterator[tuple[str, Path]]:
    """What a document calls a file of ours or links to, and where that is."""
    text = document.read_text()
    for name in PATH_IN_CODE.findall(text):
        if name.startswith(OUR_FOLDERS):
            yield name, ROOT / name
    for command in (*FENCED.findall(text), *INDENTED.findall(text)):
        for name in IN_COMMAND.findall(command):
            yield name, ROOT / name
    for name in LINK.findall(FENCED.sub("", text)):
        yield name, document.parent / name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_it_names_is_there(document: Path) -> None:
    assert [name for name, path in named_files(document) if not path.exists()] == []


def test_short_names_of_architecture() -> None:
    """`docs/architecture.md` names modules from their package on: each is the end of a path that is there."""
    names = set(PATH_IN_CODE.findall((ROOT / "docs" / "architecture.md").read_text()))
    assert len(names) > 20
    assert [name for name in sorted(names) if not is_somewhere(name)] == []


def is_somewhere(name: str) -> bool:
    """Whether a file of ours ends in `name`."""
    return (ROOT / name).exists() or any(any((ROOT / folder).rglob(name)) for folder in OUR_FOLDERS)


def test_the_picture_of_the_layers_is_current() -> None:
    pytest.importorskip("tomllib", reason="docs/layers.py needs Python 3.11")
    drawing = runpy.run_path(str(ROOT / "docs" / "layers.py"))["drawing"]
    assert (ROOT / "docs" / "layers.svg").read_text() == drawing()
