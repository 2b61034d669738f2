"""Messages between collectors: what is damaged, of another version or no data is refused, and nothing of it is run."""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.collect import sealed_message
from inspector.collect.sealed_message import DamagedMessageError, opened, sealed
from inspector.collect.whole_job import Findings
from inspector.collect.worker_process import Worker

from .test_whole_job import report


def test_what_is_sent_is_what_comes() -> None:
    findings = Findings(frozenset((1,)), ("a problem",), report(1, range(4), range(0)))
    assert opened(sealed(findings), Findings) == findings


def test_every_damaged_byte_is_noticed() -> None:
    message = sealed({0: "first", 1: "second"})
    for at in range(len(message)):
        damaged = bytearray(message)
        damaged[at] ^= 1
        with pytest.raises(DamagedMessageError):
            opened(bytes(damaged), dict)
        with pytest.raises(DamagedMessageError):
            opened(message[:at], dict)


def test_another_versions_message() -> None:
    message = sealed({0: "first"})
    other = sealed_message.MAGIC + b"0.0.1\n" + message.partition(b"\n")[2]
    with pytest.raises(DamagedMessageError, match="of another version"):
        opened(other, dict)


def test_another_class_than_is_wanted() -> None:
    with pytest.raises(DamagedMessageError, match="a tuple instead of a dict"):
        opened(sealed((1, 2)), dict)


class Calls:
    """Pickled, it is a call."""

    def __init__(self, function: Callable[..., object], *words: object) -> None:
        self.call = function, words

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize("function", [os.mkdir, subprocess.Popen, eval, Worker, Path.mkdir, getattr])
def test_no_message_calls_anything(function: Callable[..., object], tmp_path: Path) -> None:
    content = pickle.dumps(Calls(function, tmp_path / "made"))
    message = sealed_message._head() + sealed_message._digest(content) + content
    with pytest.raises(DamagedMessageError, match="not data of ranklens"):
        opened(message, object)
    assert not list(tmp_path.iterdir())
