"""Calls that make no sense are refused in one sentence, with exit status 2, before anything is read or written."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import threading
from pathlib import Path
from typing import Callable

import pytest

from inspector import cli
from inspector.command_line import parser
from pieglobalsfind.ranks import rankset
from tests.support.running import built

ROOT = Path(__file__).resolve().parents[3]
Refusal = Callable[..., str]

LONG = "x" * 300
TIME = "takes a time of 10ms to 10000min, and not"
NOT_EMPTY = "an empty text is given for {}: give a value, or leave it out"

CALLS = {
    "report --job": NOT_EMPTY.format("job"),
    "stacks --job": NOT_EMPTY.format("job"),
    "events": NOT_EMPTY.format("target"),
    "mpir": NOT_EMPTY.format("job"),
    "report": NOT_EMPTY.format("target"),
    "report 1 --html": NOT_EMPTY.format("html"),
    "perfmap 1 -o": NOT_EMPTY.format("output"),
    "merge": NOT_EMPTY.format("files"),
    "audit /bin/true --method": NOT_EMPTY.format("method"),
}


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Refusal:
    """What the command says against a call, without its name."""

    def refuse(*words: object) -> str:
        status = cli.main(list(map(str, words)))
        said = capsys.readouterr()
        assert (status, said.out) == (2, ""), said.err
        name, _, sentence = said.err.partition(": ")
        assert name == "inspector" and sentence.count("\n") == 1, said.err
        return sentence.rstrip("\n")

    return refuse


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [("stacks", "--fold", "--folded"), ("events", "--past", "--no-follow"), ("events", "--for=2s", "--duration")],
)
def test_an_option_that_was_renamed(refusal: Refusal, command: str, old: str, new: str) -> None:
    assert refusal(command, 1, old) == f"{old.partition('=')[0]} has another name now: use {new}"


@pytest.mark.parametrize("words", CALLS)
def test_an_empty_text_for_a_name(refusal: Refusal, words: str) -> None:
    assert refusal(*words.split(), "") == CALLS[words]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("stacks", 1, "--every", "x", "-o", "d"), f"--every {TIME} 'x': for instance --every 2s"),
        (("stacks", 1, "--every", "9ms", "-o", "d"), f"--every {TIME} '9ms': for instance --every 2s"),
        (("watch", 1, "--every", "9" * 30), f"--every {TIME} '{'9' * 30}': for instance --every 2s"),
        (("events", 1, "--duration", "1e400"), f"--duration {TIME} '1e400': for instance --duration 2s"),
        (("events", 1, "--every", "nan"), f"--every {TIME} 'nan': for instance --every 2s"),
        (("events", 1, "--every", "\u0663s"), f"--every {TIME} '\u0663s': for instance --every 2s"),
        (
            ("report", 1, "--timeout", "abc"),
            "--timeout is for collectors, and this call starts none: add --mpi, or leave it out",
        ),
        (("report", "--mpi", "--job", "j", "--timeout", "abc"), f"--timeout {TIME} 'abc': for instance --timeout 2s"),
        (
            ("payload", 1, "--bandwidth", "9" * 400 + "GB/s"),
            f"--bandwidth takes 1B/s to 1000TB/s, and not '{'9' * 400}GB/s': for instance 12.5GB/s, or 100Gb/s",
        ),
        (
            ("payload", 1, "--latency", "9" * 9 + "s"),
            f"--latency takes a time of up to 1000s, and not '{'9' * 9}s': for instance 2us or 0.5ms",
        ),
    ],
)
def test_a_number_out_of_bounds(refusal: Refusal, words: tuple[object, ...], sentence: str) -> None:
    assert refusal(*words) == sentence


@pytest.mark.parametrize(
    "words", [("--bandwidth", "1GB/s"), ("--latency", "0us"), ("--bandwidth", "1GB/s", "--latency", "1us", "--json")]
)
def test_a_link_that_nothing_goes_over(refusal: Refusal, words: tuple[object, ...]) -> None:
    sentence = "--bandwidth and --latency are of a link: add --what-if, or leave them out"
    assert refusal("payload", "/bin/true", *words) == sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((1, "-o", "d"), "-o and --keep are for the flight recorder: say how often it is to read by --every"),
        ((1, "--keep", 3), "-o and --keep are for the flight recorder: say how often it is to read by --every"),
        (
            (1, "--every", "1s", "-o", "d", "--freeze"),
            "the flight recorder holds no process still, and reads no files: leave --freeze and --exe out",
        ),
        ((1, "--exe", "/bin/true"), "a process knows its own files: give --exe only with a core file"),
        ((1, "--exe", "/bin/true", "--freeze"), "a process knows its own files: give --exe only with a core file"),
    ],
)
def test_options_that_do_not_go_together(refusal: Refusal, words: tuple[object, ...], sentence: str) -> None:
    assert refusal("stacks", *words) == sentence


@pytest.mark.parametrize("chosen", ["-1", "3-1", ",", "1e3", "0x1", "//"])
@pytest.mark.parametrize("command", ["stacks", "globals"])
def test_a_set_of_ranks_that_is_none(refusal: Refusal, command: str, chosen: str) -> None:
    """As debuggers' commands say it, and before anything is read."""
    assert refusal(command, "/bin/true", f"--rank={chosen}") == f"{chosen!r} is not a set of ranks: {rankset.HINT}"


def test_a_program_and_the_program_of_a_core_file(refusal: Refusal) -> None:
    assert refusal("audit", "/bin/true", "--exe", "/bin/false") == "/bin/true is not a core file: leave --exe out"


@pytest.mark.parametrize("command", ["report", "stacks", "events", "ranks", "waits", "snapshot"])
def test_a_pipe_that_nobody_writes_to(refusal: Refusal, command: str, tmp_path: Path) -> None:
    """Nobody waits for it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = ["-o", tmp_path / "file"] if command == "snapshot" else []
    assert refusal(command, pipe, *options) == f"{pipe} is not a regular file"


def test_an_output_that_can_not_be_written_is_known_before(refusal: Refusal, tmp_path: Path) -> None:
    """Before the target is looked at: nobody waits for a job's end in vain."""
    place = tmp_path / "no" / "file"
    for words, option in ((["report", "none", "--html"], "--html"), (["events", "none", "--chrome"], "--chrome")):
        assert refusal(*words, place) == (
            f"{place} can't be written, No such file or directory: name another file by {option}"
        )


@pytest.mark.parametrize("words", [["report"], ["stacks", "--freeze"], ["perfmap"], ["audit"]])
def test_a_thread_is_no_process(refusal: Refusal, words: list[str]) -> None:
    """/proc shows its whole process under its number."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        said = refusal(*words, thread.native_id)
    finally:
        over.set()
        thread.join()
    assert said == f"{thread.native_id} is a thread of process {os.getpid()}, not a process: give that pid"


@pytest.mark.parametrize("command", ["report", "ranks", "stacks", "waits", "events", "mpir", "audit"])
def test_a_name_too_long_for_a_file(refusal: Refusal, command: str) -> None:
    assert LONG in refusal(command, LONG)


def test_a_name_too_long_for_a_job(refusal: Refusal) -> None:
    for command in ("report", "stacks"):
        assert refusal(command, "--job", LONG).startswith(f"no process of job {LONG} can be found here: ")


@pytest.mark.parametrize(
    "command",
    [
        "inspector",
        "pieglobalsfind",
        "ranklens-gdb-path",
        "ranklens-lldb-path",
        "rank-debug-check",
        "rankrun",
        "rankmpir",
    ],
)
def test_version(command: str) -> None:
    """The one that pyproject.toml gives, whatever else a call would need."""
    match = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert match is not None
    done = subprocess.run([str(built(command)), "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{command} {match[1]}\n", "")


def test_its_page_has_every_command_and_option() -> None:
    """And says of no command what it does not take: which ones read whole jobs, and which can stop a process."""
    page = (ROOT / "docs/inspector.md").read_text()
    named = {words.split()[0] for words in re.findall(r"^\| `([a-z].*?)` \|", page, re.MULTILINE)}
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert named == set(commands.choices)
    common = {"-h", "--help", "--json", "--tree", "--timeout"}
    for name, one in commands.choices.items():
        shown = [action for action in one._actions if action.help != argparse.SUPPRESS]  # old names are not
        options = {option for action in shown for option in action.option_strings} - common
        assert not {option for option in options if f"`{option}" not in page and f" {option} " not in page}, name
        for option, sentence in (("--job", r"^(.*) take `--job`;"), ("--freeze", r"^(.*) take both options")):
            match = re.search(sentence, page, re.MULTILINE)
            assert match is not None and (f"`{name}`" in match[1]) == (option in options), (name, option)
