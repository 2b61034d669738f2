"""`.ci/include_layers.py` finds every planted violation, and none in the runtime itself."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "include_layers.py"

Sources = dict[str, str]
CLEAN: Sources = {
    "image/heap.h": '#include "rank_debug.h"\n',
    "image/heap.c": '#include "image/heap.h"\n#include <stdio.h>\n',
    "ranks/ranks.h": '#include "image/heap.h"\n',
    "launch/main.c": '#include "ranks/ranks.h"\n',
    "mpi/include/mpi.h": '#include "anything.h"\n',
}


def checked(folder: Path, sources: Sources) -> tuple[int, str]:
    """Exit status of the check, and what it says, about a tree of these sources."""
    for name, text in sources.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return run(str(folder))


def run(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    return ended.returncode, ended.stderr


def test_the_runtime_is_clean() -> None:
    assert run() == (0, "")


def test_a_clean_tree_passes(tmp_path: Path) -> None:
    assert checked(tmp_path, CLEAN) == (0, "")


@pytest.mark.parametrize(
    ("planted", "error"),
    [
        pytest.param(
            {"image/other.c": '#include "ranks/ranks.h"\n'},
            "image/other.c includes ranks/ranks.h, of a layer above its own\n",
            id="upwards",
        ),
        pytest.param(
            {"image/heap.c": '#include "ranges.h"\n'},
            "image/heap.c includes ranges.h, which no layer has: name it as FOLDER/FILE.h\n",
            id="without its folder",
        ),
        pytest.param(
            {
                "image/heap.h": '#include "image/ranges.h"\n',
                "image/ranges.h": "",
                "image/ranges.c": '#include "image/heap.h"\n',
            },
            "modules include one another in a circle: image/heap, image/ranges\n",
            id="circle",
        ),
    ],
)
def test_an_include_is_refused(tmp_path: Path, planted: Sources, error: str) -> None:
    assert checked(tmp_path, CLEAN | planted) == (1, error)


@pytest.mark.parametrize("source", ["main.c", "other/main.c", "image/deeper/main.c"])
def test_a_source_that_no_layer_names_is_refused(tmp_path: Path, source: str) -> None:
    status, error = checked(tmp_path, CLEAN | {source: ""})
    assert status == 1
    assert error.startswith(f"{source} is in no layer; the layers are machine, image, libc, ")
