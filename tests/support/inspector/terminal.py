"""A real terminal: tmux in a pane of its own, real key presses, and what the pane shows.

A terminal is painted piece by piece, so one look at it may see half of a picture. A test therefore says all that it
wants to see and waits until that is shown at once; that something is missing it tells from what stands in its place.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

PROMPT = "here>"
KEPT = ("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME")  # of the environment; the rest changes how programs draw


class Terminal:
    """One pane with a shell in it."""

    def __init__(self, folder: Path, columns: int, lines: int) -> None:
        program = shutil.which("tmux")
        if program is None:
            pytest.fail("tmux is missing: run `.ci/setup test`")
        self.folder = folder
        self._tmux = [program, "-S", str(folder / "tmux"), "-f", "/dev/null"]
        shell = ["env", "-u", "PROMPT_COMMAND", f"PS1={PROMPT} ", "bash", "--norc", "--noprofile"]
        self._run("new-session", "-d", "-x", str(columns), "-y", str(lines), shlex.join(shell))

    def _run(self, *words: str) -> str:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {"LC_ALL": "C.UTF-8", "SHELL": "/bin/bash", "TERM": "xterm-256color"}
        done = subprocess.run(
            [*self._tmux, *words], capture_output=True, text=True, timeout=60, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names: "s", "Enter", "C-c"."""
        self._run("send-keys", *names)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def command(self, *words: object) -> None:
        self.type(shlex.join(map(str, words)))
        self.keys("Enter")

    def resize(self, columns: int, lines: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(lines))

    def shown(self) -> str:
        return self._run("capture-pane", "-p")

    def ask(self, form: str) -> str:
        """One of tmux's variables, such as #{alternate_on}."""
        return self._run("display-message", "-p", form).strip()

    def wait(self, wanted: Callable[[str], bool], name: str = "it") -> str:
        """What the pane shows as soon as all of it is as wanted."""
        shown = ""

        def is_shown() -> bool:
            nonlocal shown
            shown = self.shown()
            return wanted(shown)

        wait_until(is_shown, lambda: f"the terminal never showed {name}; at last:\n{shown}")
        return shown

    def wait_for(self, *texts: str) -> str:
        """What the pane shows as soon as it shows all of the texts at once."""
        return self.wait(lambda shown: all(text in shown for text in texts), " and ".join(map(repr, texts)))

    def wait_for_prompt(self) -> str:
        """What the pane shows once the shell waits for the next command, below all that the last one wrote."""
        return self.wait(lambda shown: shown.rstrip().endswith(PROMPT), "the prompt as its last line")

    def settings(self) -> str:
        """What stty says of the terminal, asked at the prompt; it has to be there."""
        file = self.folder / f"settings.{time.monotonic_ns()}"
        self.type(f"stty -g > {shlex.quote(str(file))}.new; mv {shlex.quote(str(file))}.new {shlex.quote(str(file))}")
        self.keys("Enter")
        self.wait(lambda shown: file.exists())
        return file.read_text()

    def close(self) -> None:
        self._run("kill-server")


@contextmanager
def terminal(folder: Path, columns: int = 110, lines: int = 30) -> Iterator[Terminal]:
    opened = Terminal(folder, columns, lines)
    try:
        yield opened
    finally:
        opened.close()
