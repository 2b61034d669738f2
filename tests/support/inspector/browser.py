"""A real headless Chromium, driven through its own protocol: real clicks and key presses, and what a page holds then.

Speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/) over a pair of pipes.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 120  # seconds
# Two frames: before the first is painted, a browser drops clicks and keys.
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def program() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("chromium is missing: run `make setup` and `.ci/setup test`")
    return found


@contextmanager
def own_temporary_files() -> Iterator[dict[str, str]]:
    """An environment in which what the browser leaves behind is removed; a socket there needs a short path."""
    with tempfile.TemporaryDirectory(prefix="ranklens-browser-", ignore_cleanup_errors=True) as folder:
        yield {**os.environ, "TMPDIR": folder}


class Page:
    """One page in one browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._pending = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []

    def open(self, address: str) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Runtime.enable")
        self.ask("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self._receive()
        self.ask("Runtime.evaluate", expression=PAINTED, awaitPromise=True)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT
        while b"\0" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                pytest.fail("the browser does not answer")
            chunk = os.read(self._answers, 1 << 16)
            assert chunk, "the browser has ended"
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Press and release the left button in the middle of an element, which is scrolled to first."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{found}.scrollIntoView({{block: 'center'}})")
        box = self.value(
            f"(() => {{ const b = {found}.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()"
        )
        place = {"x": box[0] + box[2] / 2, "y": box[1] + box[3] / 2, "button": "left", "clickCount": 1}
        self.ask("Input.dispatchMouseEvent", type="mousePressed", **place)
        self.ask("Input.dispatchMouseEvent", type="mouseReleased", **place)

    def type(self, text: str) -> None:
        """Press a key for each letter, wherever the focus is."""
        for letter in text:
            self.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def press(self, key: str, code: int) -> None:
        """A key that is not a letter, by its name and Windows' number for it."""
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """A browser with one page; it ends with the test."""
    with own_temporary_files() as environment:
        yield from driven(folder, environment)


def driven(folder: Path, environment: dict[str, str]) -> Iterator[Page]:
    from_us, to_them = os.pipe()
    from_them, to_us = os.pipe()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
    # it reads from descriptor 3 and writes to 4
    start = f'exec "$@" 3<&{from_us} 4>&{to_us}'
    command = ["bash", "-c", start, "bash", program(), *options, f"--user-data-dir={folder / 'driven'}"]
    browser = subprocess.Popen(
        command,
        pass_fds=(from_us, to_us),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )
    os.close(from_us)
    os.close(to_us)
    try:
        yield Page(to_them, from_them)
    finally:
        os.killpg(browser.pid, 9)
        browser.wait()
        os.close(to_them)
        os.close(from_them)
