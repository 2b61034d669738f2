"""A command that is told to end does so then and there, whatever it is in, and undoes what it has begun."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.support.running import ROOT, hear_interrupts

COMMAND = """
import contextlib, gc, os, signal, sys, threading, time
from pieglobalsfind.shell.exit_status import status_of
from pieglobalsfind.shell.signals import cleanup_on_signal, deferred_signals, on_signal, install

def say(text):
    os.write(1, text.encode())

def strike():
    signal.raise_signal(int(sys.argv[1]))
    time.sleep(0)

class Interrupted:
    def __del__(self):
        strike()

def run():
{}
    say("it went on")
    return 0

install()
sys.exit(status_of("tool", lambda: run))
"""


def told(body: str, number: int, before: Callable[[], object] = hear_interrupts) -> tuple[int, str, str]:
    """Status, what was said and what was complained of by a command that does `body` and is struck in it."""
    text = COMMAND.replace("{}", "\n".join(f"    {line}" for line in body.splitlines()))
    done = subprocess.run(
        [sys.executable, "-c", text, str(number)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=before,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


LOST = {
    "a destructor": "Interrupted()",
    "a callback from C": "import ctypes\nctypes.CFUNCTYPE(None)(strike)()",
    "one who takes everything": "with contextlib.suppress(BaseException):\n    strike()",
    "one who complains of another": "try:\n    strike()\nfinally:\n    raise ValueError",
    "a collection": "gc.callbacks.append(lambda *_: strike())\ngc.collect()",
    "another thread": "one = threading.Thread(target=strike)\none.start()\none.join()",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("where", LOST)
def test_it_is_not_lost(where: str, number: signal.Signals) -> None:
    """As an exception it would be."""
    assert told(LOST[where], number) == (128 + number, "", "")


def test_what_was_begun_is_undone_innermost_first() -> None:
    body = """
with cleanup_on_signal(lambda: say("never")):
    pass
with cleanup_on_signal(lambda: say("outer")), cleanup_on_signal(lambda: 1 / 0):
    with cleanup_on_signal(lambda: say("inner ")):
        strike()"""
    assert told(body, signal.SIGTERM) == (143, "inner outer", "")


def test_who_listens_ends_by_itself() -> None:
    """The second signal is heard by nobody."""
    assert told("with on_signal(lambda number: say(str(number))):\n    strike()", signal.SIGTERM) == (
        0,
        "15it went on",
        "",
    )
    twice = "with on_signal(lambda number: say(str(number))):\n    strike()\n    strike()"
    assert told(twice, signal.SIGTERM) == (143, "15", "")
    assert told("with on_signal(say):\n    pass\nstrike()", signal.SIGTERM) == (143, "", "")


def test_what_is_short_is_finished() -> None:
    body = "with deferred_signals():\n    strike()\n    say('done')"
    assert told(body, signal.SIGTERM) == (143, "done", "")
    assert told(body, signal.SIGTERM)[0] == 143 and told("with deferred_signals():\n    pass", 15) == (
        0,
        "it went on",
        "",
    )


def test_undoing_takes_no_longer_than_a_moment() -> None:
    """A terminal may be stopped, or a file's server gone."""
    begun = time.monotonic()
    assert told("with cleanup_on_signal(lambda: time.sleep(300)):\n    strike()", signal.SIGTERM) == (143, "", "")
    assert time.monotonic() - begun < 60


def ignore() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_what_is_to_be_ignored_is() -> None:
    """As by nohup(1)."""
    assert told("strike()", signal.SIGHUP, ignore) == (0, "it went on", "")
