"""Standard streams that are full, closed, or read by somebody who has seen enough; Ctrl-C before anything has begun.

All subcommands, and pieglobalsfind, end alike: without a traceback, by the same exit statuses.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import built, hear_interrupts

Ended = tuple[int, str, str]  # status, standard output, standard error


@pytest.fixture
def calls(start_ranks: StartRanks) -> dict[str, list[str]]:
    """One call for each way in which the commands print, by a name."""
    pid = str(start_ranks(SOURCES / "ring.c", ranks=7).pid)
    inspector, find = str(built("inspector")), str(built("pieglobalsfind"))
    return {
        "tables": [inspector, "report", pid],
        "JSON": [inspector, "stacks", pid, "--json"],
        "lines": [inspector, "stacks", pid, "--folded"],
        "a line at a time": [inspector, "events", pid, "--no-follow"],
        "much": [inspector, "audit", "/bin/true", "--json"],
        "addresses": [find, "--pid", pid, "0x10"],
    }


def ended(words: list[str], redirections: str) -> Ended:
    """The command, as a shell starts it with these redirections."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *words], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def said_by(words: list[str], sentence: str) -> str:
    return f"{Path(words[0]).name}: {sentence}\n"


def test_a_full_disk(calls: dict[str, list[str]]) -> None:
    why = "standard output can't be written, no space left on device"
    found = {name: ended(words, "> /dev/full") for name, words in calls.items()}
    assert found == {name: (2, "", said_by(words, why)) for name, words in calls.items()}


def test_no_standard_output(calls: dict[str, list[str]]) -> None:
    why = "standard output is closed: send it to /dev/null if it is not wanted"
    found = {name: ended(words, ">&-") for name, words in calls.items()}
    assert found == {name: (2, "", said_by(words, why)) for name, words in calls.items()}


def test_a_reader_that_has_seen_enough(calls: dict[str, list[str]]) -> None:
    found = {}
    for name, words in calls.items():
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(writer)
        found[name] = done.returncode, done.stderr
    assert found == dict.fromkeys(calls, (0, ""))


def test_no_other_streams(calls: dict[str, list[str]]) -> None:
    """What would have been said on standard error is not found on standard output."""
    for name, words in calls.items():
        status, said, _ = ended(words, "<&- 2>&-")
        assert (status, bool(said)) == (1 if name == "addresses" else 0, True), name
    for words in ([str(built("inspector")), "stacks", "none"], [str(built("pieglobalsfind")), "--pid", "1"]):
        assert ended(words, "<&- 2>&-") == (2, "", "")


@pytest.mark.parametrize(
    ("name", "words", "loads"),
    [("inspector", [], "argparse"), ("inspector", ["audit"], "rich"), ("pieglobalsfind", [], "argparse")],
)
def test_ctrl_c_before_anything_has_begun(name: str, words: list[str], loads: str, tmp_path: Path) -> None:
    """While it loads what it needs: here, a module at whose beginning the user loses patience."""
    (tmp_path / f"{loads}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport no_such\n")
    done = subprocess.run(
        [str(built(name)), *words, "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=hear_interrupts,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_width_that_is_none() -> None:
    """Some editors set COLUMNS to 0 for what they start."""
    said = {}
    for width in ("0", "", "160"):
        done = subprocess.run(
            [str(built("inspector")), "audit", "/bin/true"],
            env={**os.environ, "COLUMNS": width},
            capture_output=True,
            text=True,
            timeout=60,
        )
        said[width] = done.returncode, done.stdout, done.stderr
    assert said["0"] == said[""] and "Methods" in said["0"][1]
    assert "\t" in said["0"][1] and "\t" not in said["160"][1], "a pipe has records, a width has columns"


def test_letters_that_a_terminal_lacks(tmp_path: Path) -> None:
    """A file's name in Greek, and one that is not text at all, where letters are Latin ones."""
    for name in ("\u03b1", os.fsdecode(b"\xff")):
        (tmp_path / name).write_bytes(Path("/bin/true").read_bytes())
        done = subprocess.run(
            [str(built("inspector")), "audit", str(tmp_path / name)],
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b"") and b"Methods" in done.stdout
